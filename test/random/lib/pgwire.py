"""A small client for PostgreSQL's protocol over a Unix socket: simple queries, COPY, and statements left running.

One thread can drive several sessions with it, and see whether one of them waits for another, without any driver package.
"""
import os
import select
import socket
import struct
import time


class ServerError(Exception):
    """An ErrorResponse: sqlstate, message and the statement that got it."""

    def __init__(self, fields, statement):
        self.sqlstate = fields.get('C', '')
        self.message = fields.get('M', '')
        self.detail = fields.get('D', '')
        self.statement = statement
        super().__init__('%s %s %s in: %s' % (self.sqlstate, self.message, self.detail, statement[:2000]))


class Lost(Exception):
    """The server closed the connection."""


class Hung(Exception):
    """A statement did not end in time; it may still be running, and the connection is of no use any more."""


class Connection:
    """`limit`: seconds that a statement may take (QUERY_SECONDS; 300)."""

    def __init__(self, directory, port=5432, user='postgres', database='postgres', limit=None):
        self.limit = limit or float(os.environ.get('QUERY_SECONDS') or 300)
        self.deadline = time.monotonic() + self.limit
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.limit)
        self.sock.connect(os.path.join(directory, '.s.PGSQL.%d' % port))
        self.buffer = b''
        self.status = 'I'
        self.running = None
        self.copy_data = b''
        self.pid = 0
        body = struct.pack('!i', 196608)
        for name, value in (('user', user), ('database', database), ('client_min_messages', 'error')):
            body += name.encode() + b'\0' + value.encode() + b'\0'
        body += b'\0'
        self.sock.sendall(struct.pack('!i', len(body) + 4) + body)
        self.running = 'connect'
        self.receive()

    def close(self):
        self.sock.close()

    def query(self, sql, copy_data=None):
        """Runs a statement to its end; returns its rows (of the last one with rows) as tuples of str or None."""
        self.send(sql, copy_data)
        return self.receive()

    def one(self, sql):
        """The single value of a statement."""
        rows = self.query(sql)
        return rows[0][0] if rows else None

    def send(self, sql, copy_data=None):
        """Begins a statement; receive() gets its result."""
        assert self.running is None
        self.running = sql
        self.copy_data = copy_data if copy_data is not None else b''
        body = sql.encode() + b'\0'
        self.deadline = time.monotonic() + self.limit
        self._write(b'Q' + struct.pack('!i', len(body) + 4) + body)

    def ready(self, seconds):
        """Has something of the running statement's answer arrived within so many seconds?"""
        return bool(self.buffer) or bool(select.select([self.sock], [], [], seconds)[0])

    def _message(self):
        while True:
            if len(self.buffer) >= 5:
                length = struct.unpack('!i', self.buffer[1:5])[0]
                if len(self.buffer) >= length + 1:
                    kind, body = self.buffer[:1], self.buffer[5:length + 1]
                    self.buffer = self.buffer[length + 1:]
                    return kind, body
                # Large messages are read in one go, or joining would take quadratic time.
                parts, have = [self.buffer], len(self.buffer)
                while have < length + 1:
                    parts.append(self._read())
                    have += len(parts[-1])
                self.buffer = b''.join(parts)
            else:
                self.buffer += self._read()

    def _hung(self):
        return Hung('no end within %g seconds of: %s' % (self.limit, (self.running or '')[:2000]))

    def _write(self, data):
        try:
            self.sock.settimeout(max(self.deadline - time.monotonic(), 0.001))
            self.sock.sendall(data)
        except socket.timeout as error:
            raise self._hung() from error
        except OSError as error:
            raise Lost(str(error)) from error

    def _read(self):
        try:
            self.sock.settimeout(max(self.deadline - time.monotonic(), 0.001))
            data = self.sock.recv(1 << 20)
        except socket.timeout as error:
            raise self._hung() from error
        except OSError as error:
            raise Lost(str(error)) from error
        if not data:
            raise Lost('server closed the connection in: %s' % (self.running or '')[:2000])
        return data

    def receive(self):
        """Waits for the end of the running statement; returns its rows or raises ServerError, or Hung."""
        rows, error, self.tag, self.copied = [], None, '', b''
        copied = []
        while True:
            kind, body = self._message()
            if kind == b'T':
                rows = []
            elif kind == b'D':
                rows.append(self._row(body))
            elif kind == b'C':
                self.tag = body[:-1].decode()
            elif kind == b'E' and error is None:
                fields = {part[:1].decode(): part[1:].decode('utf8', 'replace') for part in body.split(b'\0') if part}
                error = ServerError(fields, self.running or '')
            elif kind == b'G':
                for at in range(0, len(self.copy_data), 1 << 16):
                    piece = self.copy_data[at:at + (1 << 16)]
                    self._write(b'd' + struct.pack('!i', len(piece) + 4) + piece)
                self._write(b'c' + struct.pack('!i', 4))
            elif kind == b'd':
                copied.append(body)
            elif kind == b'K':
                self.pid = struct.unpack('!i', body[:4])[0]
            elif kind == b'R' and struct.unpack('!i', body[:4])[0] != 0:
                raise Lost('the server asks for a password')
            elif kind == b'Z':
                self.status = body.decode()
                self.running = None
                self.copied = b''.join(copied)
                if error is not None:
                    raise error
                return rows

    @staticmethod
    def _row(body):
        count, at, values = struct.unpack('!h', body[:2])[0], 2, []
        for _ in range(count):
            length = struct.unpack('!i', body[at:at + 4])[0]
            at += 4
            if length < 0:
                values.append(None)
            else:
                values.append(body[at:at + length].decode())
                at += length
        return tuple(values)
