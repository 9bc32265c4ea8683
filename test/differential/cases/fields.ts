/** Fields of requests and responses, and those that belong to one connection. */
import { type Case, ok, requestText, responseText, withChunks } from '../case.ts'

const sent = (name: string, ...fields: string[]): Case => ({ name, send: requestText({ fields }) })
const answered = (name: string, ...fields: string[]): Case => ({
  name,
  send: requestText(),
  answer: ok(fields),
})

export const fields: readonly Case[] = [
  sent('fields/twice', 'X-Many: a', 'X-Other: x', 'X-Many: b'),
  sent('fields/empty', 'X-Empty:'),
  sent('fields/spaces-around', 'X-Spaced:   a b  '),
  sent('fields/tab-inside', 'X-Tab: a\tb'),
  sent('fields/bytes-above-ascii', 'X-Bytes: caf\xe9'),
  sent('fields/control-character', 'X-Control: a\x01b'),
  sent('fields/nul', 'X-Nul: a\0b'),
  sent('fields/space-before-the-colon', 'X-Space : a'),
  sent('fields/space-before-the-name', ' X-Space: a'),
  sent('fields/folded', 'X-Folded: a\r\n b'),
  sent('fields/no-colon', 'X-Nothing'),
  sent('fields/no-name', ': a'),
  sent('fields/underscore', 'X_Under: a'),
  sent('fields/odd-name', "X!#$%&'*+-.^`|~9: a"),
  sent('fields/bad-name', 'X(a): a'),
  sent('fields/two-cookies', 'Cookie: a=1', 'Cookie: b=2'),
  sent('fields/forwarded', 'X-Forwarded-For: 192.0.2.1', 'X-Forwarded-Proto: https'),
  sent('fields/many', ...Array.from({ length: 90 }, (_, n) => `X-Many-${n}: ${n}`)),
  sent('fields/large', `X-Large: ${'a'.repeat(7_000)}`),
  sent('fields/accept-encoding', 'Accept-Encoding: gzip, br'),
  { name: 'fields/line-feeds-alone', send: requestText().replaceAll('\r\n', '\n') },
  { name: 'fields/empty-line-first', send: `\r\n${requestText()}` },
  answered('fields/two-set-cookies', 'Set-Cookie: a=1', 'Set-Cookie: b=2'),
  answered('fields/empty-in-response', 'X-Empty:'),
  answered('fields/twice-in-response', 'X-Many: a', 'X-Many: b'),
  answered('fields/server', 'Server: own/1'),
  answered('fields/folded-in-response', 'X-Folded: a\r\n b'),
  answered('fields/space-before-the-colon-in-response', 'X-Space : a'),
  answered('fields/control-character-in-response', 'X-Control: a\x01b'),
  answered('fields/bytes-above-ascii-in-response', 'X-Bytes: caf\xe9'),
  answered('fields/underscore-in-response', 'X_Under: a'),
  answered('fields/no-colon-in-response', 'X-Nothing'),
  answered('fields/large-in-response', `X-Large: ${'a'.repeat(3_000)}`),
  answered('fields/accel', 'X-Accel-Expires: 1', 'X-Accel-Redirect: /exact'),
]

export const hopByHop: readonly Case[] = [
  {
    ...sent('hop-by-hop/nominated', 'X-Own: a', 'Connection: x-own'),
    report: 'http-party/node-http-proxy#446',
  },
  sent('hop-by-hop/nominated-with-others', 'X-Own: a', 'Connection: keep-alive, X-Own'),
  sent('hop-by-hop/nominated-cookie', 'Cookie: a=1', 'Connection: cookie'),
  sent('hop-by-hop/nominated-authorization', 'Authorization: b', 'Connection: authorization'),
  sent('hop-by-hop/nominated-host', 'Connection: host'),
  sent('hop-by-hop/keep-alive', 'Keep-Alive: timeout=5'),
  sent('hop-by-hop/proxy-connection', 'Proxy-Connection: keep-alive'),
  sent('hop-by-hop/te-trailers', 'TE: trailers', 'Connection: te'),
  sent('hop-by-hop/te-alone', 'TE: trailers'),
  sent('hop-by-hop/te-gzip', 'TE: gzip, trailers;q=0.5', 'Connection: te'),
  sent('hop-by-hop/proxy-authorization', 'Proxy-Authorization: Basic YTpi'),
  sent('hop-by-hop/upgrade-to-h2c', 'Connection: Upgrade', 'Upgrade: h2c'),
  sent('hop-by-hop/upgrade-without-connection', 'Upgrade: websocket'),
  {
    name: 'hop-by-hop/trailer',
    send: withChunks(['a'], ['X-End: b'], { fields: ['Trailer: X-End'] }),
  },
  answered('hop-by-hop/nominated-in-response', 'X-Own: a', 'Connection: x-own'),
  answered('hop-by-hop/keep-alive-in-response', 'Keep-Alive: timeout=5', 'Connection: keep-alive'),
  answered('hop-by-hop/upgrade-in-response', 'Connection: upgrade', 'Upgrade: h2c'),
  answered('hop-by-hop/proxy-connection-in-response', 'Proxy-Connection: close'),
  {
    name: 'hop-by-hop/proxy-authenticate',
    send: requestText(),
    answer: responseText('407 Proxy Authentication Required', [
      'Content-Length: 0',
      'Proxy-Authenticate: Basic realm="a"',
    ]),
  },
]
