/** Interim responses, Expect, trailers, ranges, conditions, methods and versions. */
import {
  type Case,
  chunked,
  ok,
  requestText,
  responseText,
  type Step,
  withChunks,
  withLength,
} from '../case.ts'

const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n'
const goOn = 'HTTP/1.1 100 Continue\r\n\r\n'

export const interim: readonly Case[] = [
  { name: 'interim/hints', report: 'nginx/nginx#884', send: requestText(), answer: hints + ok() },
  {
    name: 'interim/hints-twice',
    report: 'envoyproxy/envoy#25881',
    send: requestText(),
    answer: hints + hints + ok(),
  },
  {
    name: 'interim/hints-to-1.0',
    send: requestText({ version: 'HTTP/1.0' }),
    answer: hints + ok(),
  },
  {
    name: 'interim/processing',
    send: requestText(),
    answer: `HTTP/1.1 102 Processing\r\n\r\n${ok()}`,
  },
  { name: 'interim/continue-unasked', send: requestText(), answer: goOn + ok() },
  {
    name: 'interim/continue-with-length',
    report: 'haproxy/haproxy#1561',
    send: requestText(),
    answer: `HTTP/1.1 100 Continue\r\nContent-Length: 3\r\n\r\n${ok()}`,
  },
  {
    name: 'interim/switch-unasked',
    send: requestText(),
    answer: [
      {
        on: 'request',
        write:
          'HTTP/1.1 101 Switching Protocols\r\nX-From: server\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
        ending: 'end',
      },
    ],
  },
]

const expecting = (fields: readonly string[] = []) => ({
  send: requestText({
    method: 'POST',
    fields: ['Content-Length: 4', 'Expect: 100-continue', ...fields],
  }),
  thenSend: 'body',
})
const refusal = (status: string): readonly Step[] => [
  {
    on: 'head',
    write: responseText(status, ['Content-Length: 0', 'Connection: close']),
    ending: 'end',
  },
]

export const expect: readonly Case[] = [
  {
    name: 'expect/continue',
    ...expecting(),
    answer: [
      { on: 'head', write: goOn },
      { on: 'request', write: ok() },
    ],
  },
  // Sluice waits for three seconds before it sends 100 (Continue) itself.
  { name: 'expect/unanswered', ...expecting(), answer: ok(), patienceMs: 6_000 },
  { name: 'expect/refused-with-417', ...expecting(), answer: refusal('417 Expectation Failed') },
  {
    name: 'expect/refused-with-401',
    report: 'tinyproxy/tinyproxy#79',
    ...expecting(),
    answer: refusal('401 Unauthorized'),
  },
  {
    name: 'expect/body-at-once',
    send: withLength('body', { fields: ['Expect: 100-continue'] }),
    answer: ok(),
  },
  {
    name: 'expect/without-a-body',
    send: requestText({ fields: ['Expect: 100-continue'] }),
    answer: ok(),
  },
  { name: 'expect/unknown', send: withLength('body', { fields: ['Expect: other'] }), answer: ok() },
  {
    name: 'expect/of-1.0',
    send: withLength('body', { version: 'HTTP/1.0', fields: ['Expect: 100-continue'] }),
    answer: ok(),
  },
]

const answeredChunks = (trailers: readonly string[], fields: readonly string[] = []) =>
  responseText('200 OK', ['Transfer-Encoding: chunked', ...fields], chunked(['hello'], trailers))

export const trailers: readonly Case[] = [
  { name: 'trailers/request', send: withChunks(['body'], ['X-End: a']) },
  {
    name: 'trailers/request-with-a-framing-field',
    send: withChunks(['body'], ['Content-Length: 9']),
  },
  { name: 'trailers/request-with-a-credential', send: withChunks(['body'], ['Authorization: a']) },
  {
    name: 'trailers/response',
    report: 'envoyproxy/envoy#7149',
    send: requestText({ fields: ['TE: trailers', 'Connection: te'] }),
    answer: answeredChunks(['X-End: a'], ['Trailer: X-End']),
  },
  {
    name: 'trailers/response-without-te',
    send: requestText(),
    answer: answeredChunks(['X-End: a']),
  },
  {
    name: 'trailers/response-with-a-framing-field',
    send: requestText(),
    answer: answeredChunks(['Content-Length: 9']),
  },
  {
    name: 'trailers/response-to-1.0',
    send: requestText({ version: 'HTTP/1.0' }),
    answer: answeredChunks(['X-End: a']),
  },
]

export const ranges: readonly Case[] = [
  {
    name: 'ranges/part',
    send: requestText({ fields: ['Range: bytes=1-2'] }),
    answer: responseText(
      '206 Partial Content',
      ['Content-Range: bytes 1-2/5', 'Content-Length: 2'],
      'el',
    ),
  },
  {
    name: 'ranges/ignored',
    send: requestText({ fields: ['Range: bytes=1-2'] }),
    answer: ok(['Accept-Ranges: bytes']),
  },
  {
    name: 'ranges/several',
    send: requestText({ fields: ['Range: bytes=0-0,2-2'] }),
    answer: responseText(
      '206 Partial Content',
      ['Content-Type: multipart/byteranges; boundary=x', 'Content-Length: 5'],
      '--x--',
    ),
  },
  {
    name: 'ranges/if-range',
    send: requestText({ fields: ['Range: bytes=1-', 'If-Range: "a"'] }),
    answer: ok(['ETag: "b"']),
  },
  {
    name: 'ranges/unsatisfied',
    send: requestText({ fields: ['Range: bytes=9-'] }),
    answer: responseText('416 Range Not Satisfiable', [
      'Content-Range: bytes */5',
      'Content-Length: 0',
    ]),
  },
  {
    name: 'conditions/none-match',
    send: requestText({ fields: ['If-None-Match: "a"'] }),
    answer: responseText('304 Not Modified', ['ETag: "a"', 'Cache-Control: max-age=1']),
  },
  {
    name: 'conditions/none-match-ignored',
    send: requestText({ fields: ['If-None-Match: "a"'] }),
    answer: ok(['ETag: "a"']),
  },
  {
    name: 'conditions/modified-since',
    send: requestText({ fields: ['If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT'] }),
    answer: responseText('304 Not Modified', ['Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT']),
  },
  {
    name: 'conditions/modified-since-ignored',
    send: requestText({ fields: ['If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT'] }),
    answer: ok(['Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT']),
  },
  {
    name: 'conditions/match',
    send: withLength('x', { method: 'PUT', fields: ['If-Match: "a"'] }),
    answer: responseText('412 Precondition Failed', ['Content-Length: 0']),
  },
]

const method = (name: string, value: string, fields: readonly string[] = []): Case => ({
  name: `methods/${name}`,
  send: requestText({ method: value, fields }),
})

export const methods: readonly Case[] = [
  { name: 'methods/patch', send: withLength('a', { method: 'PATCH' }) },
  method('unknown', 'BREW'),
  method('unknown-with-a-hyphen', 'VERSION-CONTROL'),
  method('lower-case', 'get'),
  method('query', 'QUERY'),
  method('options', 'OPTIONS'),
  method('trace', 'TRACE'),
  method('trace-with-max-forwards-0', 'TRACE', ['Max-Forwards: 0']),
  method('options-with-max-forwards-0', 'OPTIONS', ['Max-Forwards: 0']),
  method('options-for-two', 'OPTIONS', ['Max-Forwards: 2']),
  method('get-with-max-forwards', 'GET', ['Max-Forwards: 0']),
  method('bad', 'G(T'),
  {
    name: 'methods/connect',
    send: `CONNECT site.example.com:443 HTTP/1.1\r\nHost: site.example.com:443\r\n\r\n`,
  },
]

export const versions: readonly Case[] = [
  { name: 'versions/1.0', send: requestText({ version: 'HTTP/1.0' }) },
  { name: 'versions/1.0-without-a-host', send: 'GET /page HTTP/1.0\r\n\r\n' },
  {
    name: 'versions/1.0-kept',
    send: requestText({ version: 'HTTP/1.0', fields: ['Connection: keep-alive'] }),
  },
  {
    name: 'versions/1.0-chunks',
    report: 'linkerd/linkerd#1847',
    send: requestText({ version: 'HTTP/1.0' }),
    answer: responseText('200 OK', ['Transfer-Encoding: chunked'], chunked(['hello'])),
  },
  {
    name: 'versions/1.0-kept-chunks',
    send: requestText({ version: 'HTTP/1.0', fields: ['Connection: keep-alive'] }),
    answer: responseText('200 OK', ['Transfer-Encoding: chunked'], chunked(['hello'])),
  },
  { name: 'versions/1.0-post', send: withLength('body', { version: 'HTTP/1.0' }) },
  { name: 'versions/1.2', send: requestText({ version: 'HTTP/1.2' }) },
  { name: 'versions/2.0', send: requestText({ version: 'HTTP/2.0' }) },
  { name: 'versions/0.9', send: 'GET /page\r\n' },
  { name: 'versions/lower-case', send: requestText({ version: 'http/1.1' }) },
  { name: 'versions/absent', send: 'GET /page \r\nHost: site.example.com\r\n\r\n' },
  { name: 'versions/two-spaces', send: 'GET  /page  HTTP/1.1\r\nHost: site.example.com\r\n\r\n' },
]
