/** Ends of connections, failures of the server, upgrades. */
import { type Case, ok, requestText, responseText, type Step, withLength } from '../case.ts'

const end: readonly Step[] = [{ on: 'request', write: '', ending: 'end' }]
const reset: readonly Step[] = [{ on: 'request', write: '', ending: 'reset' }]
const two = requestText({ path: '/first' }) + requestText({ path: '/second' })

export const connections: readonly Case[] = [
  { name: 'connections/close', send: requestText({ fields: ['Connection: close'] }) },
  { name: 'connections/close-in-capitals', send: requestText({ fields: ['Connection: CLOSE'] }) },
  {
    name: 'connections/close-by-the-server',
    send: requestText(),
    answer: [{ on: 'request', write: ok(['Connection: close']), ending: 'end' }],
  },
  { name: 'connections/pipelined', send: two, responses: 2 },
  {
    name: 'connections/pipelined-behind-close',
    send: requestText({ fields: ['Connection: close'] }) + requestText(),
  },
  {
    name: 'connections/early-response',
    send: requestText({ method: 'POST', fields: ['Content-Length: 100'], body: 'part' }),
    answer: [
      {
        on: 'head',
        write: responseText('413 Content Too Large', ['Content-Length: 0', 'Connection: close']),
        ending: 'end',
      },
    ],
  },
  {
    name: 'connections/early-response-kept',
    send: requestText({ method: 'POST', fields: ['Content-Length: 100'], body: 'part' }),
    answer: [{ on: 'head', write: responseText('403 Forbidden', ['Content-Length: 0']) }],
  },
  { name: 'connections/server-ends', send: requestText(), answer: end },
  { name: 'connections/server-ends-after-post', send: withLength('body'), answer: end },
  { name: 'connections/server-resets', send: requestText(), answer: reset },
  { name: 'connections/server-resets-after-post', send: withLength('body'), answer: reset },
  {
    name: 'connections/server-ends-in-the-head',
    send: requestText(),
    answer: [{ on: 'request', write: 'HTTP/1.1 200 OK\r\nContent-Le', ending: 'end' }],
  },
  { name: 'connections/server-down', send: requestText({ path: '/down' }) },
  { name: 'connections/server-down-and-post', send: withLength('body', { path: '/down' }) },
  { name: 'connections/server-silent', send: requestText({ path: '/slow' }), answer: [] },
  {
    name: 'connections/server-silent-after-post',
    send: withLength('body', { path: '/slow' }),
    answer: [],
  },
]

const webSocket = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

export const upgrades: readonly Case[] = [
  {
    name: 'upgrades/refused',
    send: requestText({ path: '/socket', fields: webSocket }),
    answer: responseText('403 Forbidden', ['Content-Length: 0']),
  },
  {
    name: 'upgrades/accepted',
    send: requestText({ path: '/socket', fields: webSocket }),
    answer: [
      {
        on: 'request',
        write:
          'HTTP/1.1 101 Switching Protocols\r\nX-From: server\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframes',
        ending: 'end',
      },
    ],
  },
  { name: 'upgrades/ignored', send: requestText({ path: '/socket', fields: webSocket }) },
]
