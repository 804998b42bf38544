-- Run once by the database image, on an empty volume; the database `rag` is made by POSTGRES_DB.
CREATE DATABASE dagster;
