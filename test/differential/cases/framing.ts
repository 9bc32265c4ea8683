/** Where bodies end: lengths, chunks, connections, and statuses without a body. */
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

const sent = (name: string, send: string, report?: string): Case => ({
  name,
  send,
  ...(report !== undefined && { report }),
})

const posted = (name: string, fields: readonly string[], body: string): Case =>
  sent(name, requestText({ method: 'POST', fields, body }))

export const requestFraming: readonly Case[] = [
  sent('request-framing/length', withLength('body')),
  sent('request-framing/chunks', withChunks(['bo', 'dy'])),
  sent('request-framing/get', requestText(), 'envoyproxy/envoy#15049'),
  sent('request-framing/get-with-a-body', withLength('body', { method: 'GET' })),
  sent('request-framing/delete-with-a-body', withLength('body', { method: 'DELETE' })),
  sent('request-framing/post-without-a-body', requestText({ method: 'POST' })),
  sent('request-framing/length-0', withLength('')),
  sent('request-framing/no-chunks', withChunks([])),
  posted(
    'request-framing/chunk-extension',
    ['Transfer-Encoding: chunked'],
    '4;a=b\r\nbody\r\n0\r\n\r\n',
  ),
  posted(
    'request-framing/chunk-size-in-capitals',
    ['Transfer-Encoding: chunked'],
    `A\r\n${'a'.repeat(10)}\r\n0\r\n\r\n`,
  ),
  posted(
    'request-framing/chunk-size-with-zeros',
    ['Transfer-Encoding: chunked'],
    '0004\r\nbody\r\n0\r\n\r\n',
  ),
  posted(
    'request-framing/bad-chunk-size',
    ['Transfer-Encoding: chunked'],
    '0x4\r\nbody\r\n0\r\n\r\n',
  ),
  posted('request-framing/chunk-with-line-feeds', ['Transfer-Encoding: chunked'], '4\nbody\n0\n\n'),
  posted(
    'request-framing/chunk-longer-than-its-size',
    ['Transfer-Encoding: chunked'],
    '3\r\nbody\r\n0\r\n\r\n',
  ),
  posted(
    'request-framing/length-and-chunks',
    ['Content-Length: 4', 'Transfer-Encoding: chunked'],
    chunked(['body']),
  ),
  posted('request-framing/two-equal-lengths', ['Content-Length: 4', 'Content-Length: 4'], 'body'),
  posted('request-framing/two-lengths', ['Content-Length: 4', 'Content-Length: 5'], 'body!'),
  posted('request-framing/list-of-lengths', ['Content-Length: 4, 4'], 'body'),
  posted('request-framing/length-with-a-sign', ['Content-Length: +4'], 'body'),
  posted('request-framing/length-with-a-zero', ['Content-Length: 04'], 'body'),
  posted('request-framing/empty-length', ['Content-Length:'], ''),
  posted('request-framing/large-length', ['Content-Length: 99999999999999999999'], ''),
  posted(
    'request-framing/gzip-and-chunked',
    ['Transfer-Encoding: gzip, chunked'],
    chunked(['body']),
  ),
  posted('request-framing/identity', ['Transfer-Encoding: identity'], ''),
  posted(
    'request-framing/chunked-twice',
    ['Transfer-Encoding: chunked, chunked'],
    chunked(['body']),
  ),
  posted('request-framing/chunked-in-capitals', ['Transfer-Encoding: Chunked'], chunked(['body'])),
  posted('request-framing/unknown-coding', ['Transfer-Encoding: xchunked'], chunked(['body'])),
  {
    name: 'request-framing/chunks-of-1.0',
    report: 'httpwg/http-core#879',
    send: withChunks(['body'], [], { version: 'HTTP/1.0' }),
  },
]

const answered = (name: string, answer: string | readonly Step[], more: object = {}): Case => ({
  name,
  send: requestText(),
  answer,
  ...more,
})
const ended = (write: string): readonly Step[] => [{ on: 'request', write, ending: 'end' }]
const head = { send: requestText({ method: 'HEAD' }) }

export const responseFraming: readonly Case[] = [
  answered('response-framing/length', ok()),
  answered('response-framing/length-0', ok([], ''), { report: 'h2o/h2o#276' }),
  answered(
    'response-framing/chunks',
    responseText('200 OK', ['Transfer-Encoding: chunked'], chunked(['he', 'llo'])),
  ),
  answered(
    'response-framing/no-chunks',
    responseText('200 OK', ['Transfer-Encoding: chunked'], chunked([])),
  ),
  answered(
    'response-framing/chunk-extension',
    responseText('200 OK', ['Transfer-Encoding: chunked'], '5;a=b\r\nhello\r\n0\r\n\r\n'),
  ),
  answered('response-framing/until-the-end', ended(responseText('200 OK', [], 'hello'))),
  answered('response-framing/length-and-close', ended(ok(['Connection: close']))),
  answered(
    'response-framing/cut-length',
    ended(responseText('200 OK', ['Content-Length: 9'], 'hello')),
  ),
  answered(
    'response-framing/cut-chunks',
    ended(responseText('200 OK', ['Transfer-Encoding: chunked'], '5\r\nhello\r\n')),
    { report: 'h2o/h2o#2070' },
  ),
  answered(
    'response-framing/bytes-behind',
    `${ok()}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`,
  ),
  answered(
    'response-framing/length-and-chunks',
    responseText('200 OK', ['Content-Length: 5', 'Transfer-Encoding: chunked'], chunked(['hello'])),
    { report: 'envoyproxy/envoy#9016' },
  ),
  answered(
    'response-framing/two-equal-lengths',
    responseText('200 OK', ['Content-Length: 5', 'Content-Length: 5'], 'hello'),
  ),
  answered(
    'response-framing/two-lengths',
    responseText('200 OK', ['Content-Length: 5', 'Content-Length: 6'], 'hello!'),
  ),
  answered('response-framing/bad-length', responseText('200 OK', ['Content-Length: 5x'], 'hello')),
  answered(
    'response-framing/gzip-and-chunked',
    responseText('200 OK', ['Transfer-Encoding: gzip, chunked'], chunked(['hello'])),
  ),
  answered(
    'response-framing/bad-chunk-size',
    ended(responseText('200 OK', ['Transfer-Encoding: chunked'], 'zz\r\nhello\r\n0\r\n\r\n')),
  ),
  answered('response-framing/204', responseText('204 No Content', []), {
    report: 'haproxy/haproxy#3073',
  }),
  answered(
    'response-framing/204-with-length-0',
    responseText('204 No Content', ['Content-Length: 0']),
  ),
  answered(
    'response-framing/204-with-chunked',
    responseText('204 No Content', ['Transfer-Encoding: chunked'], chunked([])),
    { report: 'envoyproxy/envoy#11458' },
  ),
  answered(
    'response-framing/204-with-a-body',
    ended(responseText('204 No Content', ['Content-Length: 4'], 'body')),
  ),
  answered('response-framing/205', responseText('205 Reset Content', ['Content-Length: 0'])),
  answered('response-framing/304', responseText('304 Not Modified', ['ETag: "a"'])),
  answered(
    'response-framing/304-with-length',
    responseText('304 Not Modified', ['ETag: "a"', 'Content-Length: 5']),
  ),
  answered(
    'response-framing/head-with-length',
    responseText('200 OK', ['Content-Length: 5']),
    head,
  ),
  answered(
    'response-framing/head-with-length-0',
    responseText('200 OK', ['Content-Length: 0']),
    head,
  ),
  answered(
    'response-framing/head-with-chunked',
    responseText('200 OK', ['Transfer-Encoding: chunked']),
    { ...head, report: 'envoyproxy/envoy#3775' },
  ),
  answered('response-framing/head-without-length', responseText('200 OK', []), head),
  answered('response-framing/head-with-a-body', ended(ok()), head),
  answered('response-framing/404', responseText('404 Not Found', ['Content-Length: 4'], 'gone')),
  answered('response-framing/500', responseText('500 Oops', ['Content-Length: 4'], 'oops')),
  answered('response-framing/status-299', responseText('299 Odd', ['Content-Length: 0'])),
  answered('response-framing/status-999', ended(responseText('999 Odd', ['Content-Length: 0']))),
  answered(
    'response-framing/status-of-two-digits',
    ended(responseText('20 OK', ['Content-Length: 0'])),
  ),
  answered('response-framing/no-reason', responseText('200', ['Content-Length: 5'], 'hello')),
  answered(
    'response-framing/colon-behind-the-status',
    ended(responseText('404: Not Found', ['Content-Length: 0'])),
    { report: 'nginx/nginx#378' },
  ),
  answered('response-framing/version-1.0', ended(responseText('200 OK', [], 'hello', 'HTTP/1.0'))),
  answered('response-framing/version-0.9', ended('hello')),
  answered(
    'response-framing/version-2.0',
    ended(responseText('200 OK', ['Content-Length: 0'], '', 'HTTP/2.0')),
  ),
  answered('response-framing/line-feeds-alone', ok().replaceAll('\r\n', '\n')),
]
