"""PUT, GET, REMOVE and LIST: files of volumes."""

from __future__ import annotations

from gateway.errors import unsupported
from gateway.sql.read.command_nodes import GetFile, ListFiles, PutFile, RemoveFile
from gateway.sql.read.command_rules import CommandRules
from gateway.sql.read.tokens import STRING


class StagingParser(CommandRules):
    """Files of volumes."""

    def _put(self) -> PutFile:
        self.advance()
        local = self.string()
        self.expect("INTO")
        at = self.index
        path = self.string()
        span = self.span(at)
        overwrite = self.match("OVERWRITE")
        self._end()
        return PutFile(local, path, span, overwrite)

    def _get(self) -> GetFile:
        self.advance()
        at = self.index
        path = self.string()
        span = self.span(at)
        self.expect("TO")
        local = self.string()
        self._end()
        return GetFile(path, local, span)

    def _remove(self) -> RemoveFile:
        self.advance()
        at = self.index
        path = self.string()
        span = self.span(at)
        self._end()
        return RemoveFile(path, span)

    def _list_files(self) -> ListFiles:
        if self.peek() != STRING:  # Spark's LIST FILES and LIST JARS
            self._refuse()
        self.advance()
        at = self.index
        path = self.string()
        span = self.span(at)
        if self.word == "WITH":
            raise unsupported("LIST … WITH", self.span(self.index))
        limit = self.integer() if self.match("LIMIT") else None
        self._end()
        return ListFiles(path, span, limit)
