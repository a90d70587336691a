import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.http.UriCompliance;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Iceberg's REST reference server on 127.0.0.1, over a JDBC catalog on SQLite: `FOLDER PORT NAME`.
 *
 * Janino compiles this file at start, so that no compiler is needed: no lambdas, and generic types are raw.
 * A file `halt-after` or `pause-after` in FOLDER holds a number of tables: a transaction ends the process, or waits
 * until the file is removed, after it committed so many tables.
 */
public class Main {
    static final ThreadLocal COMMITTED = new ThreadLocal();

    /** Counts the tables that the transaction of a thread has committed. */
    static class Operations implements TableOperations {
        private final TableOperations wrapped;
        private final Path folder;

        Operations(TableOperations wrapped, Path folder) {
            this.wrapped = wrapped;
            this.folder = folder;
        }

        public void commit(TableMetadata base, TableMetadata metadata) {
            wrapped.commit(base, metadata);
            if (COMMITTED.get() == null) {
                return;
            }
            Integer committed = new Integer(((Integer) COMMITTED.get()).intValue() + 1);
            COMMITTED.set(committed);
            try {
                if (isAsked("halt-after", committed)) {
                    Runtime.getRuntime().halt(9);
                }
                while (isAsked("pause-after", committed)) {
                    Thread.sleep(20);
                }
            } catch (Exception error) {
                throw new IllegalStateException(error.toString());
            }
        }

        private boolean isAsked(String name, Integer committed) throws Exception {
            try {
                return new String(Files.readAllBytes(folder.resolve(name))).trim().equals(committed.toString());
            } catch (NoSuchFileException missing) { // the test may remove the file at any time
                return false;
            }
        }

        public TableMetadata current() { return wrapped.current(); }
        public TableMetadata refresh() { return wrapped.refresh(); }
        public FileIO io() { return wrapped.io(); }
        public EncryptionManager encryption() { return wrapped.encryption(); }
        public String metadataFileLocation(String name) { return wrapped.metadataFileLocation(name); }
        public LocationProvider locationProvider() { return wrapped.locationProvider(); }
        public TableOperations temp(TableMetadata metadata) { return wrapped.temp(metadata); }
        public long newSnapshotId() { return wrapped.newSnapshotId(); }
        public boolean requireStrictCleanup() { return wrapped.requireStrictCleanup(); }
    }

    static class Catalog extends JdbcCatalog {
        private final Path folder;

        Catalog(Path folder) { this.folder = folder; }

        protected TableOperations newTableOps(TableIdentifier name) {
            return new Operations(super.newTableOps(name), folder);
        }
    }

    static class Servlet extends RESTCatalogServlet {
        Servlet(Catalog catalog) { super(new RESTCatalogAdapter(catalog)); }

        protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
            COMMITTED.set(request.getRequestURI().endsWith("/transactions/commit") ? new Integer(0) : null);
            super.doPost(request, response);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Paths.get(arguments[0]);
        Map properties = new HashMap();
        properties.put("uri", "jdbc:sqlite:" + folder.resolve("catalog.db") + "?journal_mode=WAL&busy_timeout=60000");
        properties.put("warehouse", "file:" + folder.resolve("warehouse"));
        properties.put("jdbc.schema-version", "V1");
        Catalog catalog = new Catalog(folder);
        catalog.initialize(arguments[2], properties);
        HttpConfiguration http = new HttpConfiguration();
        http.setUriCompliance(UriCompliance.UNSAFE); // Spark asks for tables named `branch_wap%2Fx`, and needs a 404
        HttpConnectionFactory[] factories = {new HttpConnectionFactory(http)};
        Server server = new Server();
        ServerConnector connector = new ServerConnector(server, factories);
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(arguments[1]));
        server.addConnector(connector);
        ServletContextHandler handler = new ServletContextHandler("/");
        handler.getServletHandler().setDecodeAmbiguousURIs(true);
        handler.addServlet(new ServletHolder(new Servlet(catalog)), "/*");
        server.setHandler(handler);
        server.start();
        System.out.println("listening on " + server.getURI());
        server.join();
    }
}
