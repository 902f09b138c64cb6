"""The DataNodes as a NameNode knows them: their names, the room that they have, which are alive."""
