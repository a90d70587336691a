"""Import the checks of SodaCL."""
