"""PostgreSQL: connections, migrations, the writer, embedding spaces. The only place that writes to the database."""
