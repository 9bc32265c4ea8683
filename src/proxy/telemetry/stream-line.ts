/** The line of the access log that a forwarded connection, or session of datagrams, ends in. */
import type { ServerStream } from '../../engine/contracts/streams.ts'
import { member, quoted } from './access-line.ts'
import { addressText, word } from './access-text.ts'
import type { StreamFacts } from './types.ts'

function textStreamLine(time: string, stream: ServerStream, facts: StreamFacts): string {
  return (
    `${time}\tinfo\trequest` +
    word('gateway', facts.gateway) +
    word('listener', facts.listener) +
    word('route_rule', facts.rule) +
    word('route', facts.route) +
    word('endpoint', facts.endpoint) +
    ` src.addr=${addressText(stream.source)}` +
    word('tls.sni', stream.serverName) +
    ` protocol=${stream.protocol}` +
    ` bytes.received=${stream.receivedBytes} bytes.sent=${stream.sentBytes}` +
    quoted('error', facts.error) +
    (facts.reason === 'Upstream' ? '' : word('reason', facts.reason)) +
    ` duration=${Math.trunc(facts.durationMs)}ms\n`
  )
}

function jsonStreamLine(time: string, stream: ServerStream, facts: StreamFacts): string {
  return (
    `{"level":"info","time":"${time}","scope":"request"` +
    member('gateway', facts.gateway) +
    member('listener', facts.listener) +
    member('route_rule', facts.rule) +
    member('route', facts.route) +
    member('endpoint', facts.endpoint) +
    `,"src.addr":"${addressText(stream.source)}"` +
    member('tls.sni', stream.serverName) +
    `,"protocol":"${stream.protocol}"` +
    `,"bytes.received":${stream.receivedBytes},"bytes.sent":${stream.sentBytes}` +
    member('error', facts.error) +
    (facts.reason === 'Upstream' ? '' : member('reason', facts.reason)) +
    `,"duration":"${Math.trunc(facts.durationMs)}ms"}\n`
  )
}

export const streamLines = { text: textStreamLine, json: jsonStreamLine } as const
