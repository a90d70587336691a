"""What pipeline files say of starts without a person, and how it becomes what is deployed."""
