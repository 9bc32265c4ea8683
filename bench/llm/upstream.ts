/** A vendor of chat completions for benches: raw sockets and ready-made bytes, whole and streamed. */
import type { Socket } from 'node:net'
import { type BenchUpstream, startEventUpstream } from '../proxy/event-upstream.ts'

const usage = { prompt_tokens: 260, completion_tokens: 60, total_tokens: 320 }
const base = { id: 'chatcmpl-bench', created: 1_700_000_000, model: 'gpt-4o-mini' }

const chunked = (text: string): Buffer =>
  Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)

const delta = { content: ' gateway' }
const chunk = { ...base, object: 'chat.completion.chunk' }
const piece = { ...chunk, choices: [{ index: 0, delta, logprobs: null, finish_reason: null }] }
const last = { ...chunk, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }] }
const event = chunked(`data: ${JSON.stringify(piece)}\n\n`)
const ending = Buffer.concat([
  chunked(`data: ${JSON.stringify(last)}\n\n`),
  chunked(`data: ${JSON.stringify({ ...chunk, choices: [], usage })}\n\n`),
  chunked('data: [DONE]\n\n'),
  Buffer.from('0\r\n\r\n'),
])
const streamHead = Buffer.from(
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n',
)

const content = 'A gateway carries requests to servers that answer them. '.repeat(6)
const message = { role: 'assistant', content, refusal: null }
const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }]
const completion = JSON.stringify({ ...base, object: 'chat.completion', choices, usage })
const answerOf = (body: string): Buffer =>
  Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
const whole = answerOf(completion)
const generated = answerOf(
  JSON.stringify({
    candidates: [
      { content: { role: 'model', parts: [{ text: content }] }, finishReason: 'STOP', index: 0 },
    ],
    usageMetadata: { promptTokenCount: 260, candidatesTokenCount: 60, totalTokenCount: 320 },
    modelVersion: 'gemini-2.5-flash',
    responseId: 'bench',
  }),
)
const conversed = answerOf(
  JSON.stringify({
    output: { message: { role: 'assistant', content: [{ text: content }] } },
    stopReason: 'end_turn',
    usage: { inputTokens: 260, outputTokens: 60, totalTokens: 320 },
    metrics: { latencyMs: 1 },
  }),
)
/** Whole answers by a part of the path; chat completions for any other. */
const answers = [
  [':generateContent', generated],
  ['/converse', conversed],
] as const

export function startVendorUpstream(): Promise<BenchUpstream> {
  return startEventUpstream({ event, ending, countsEnding: true }, (socket, begin) => {
    answerAll(socket, (isStream, head) => {
      if (!isStream) {
        const found = answers.find(([part]) => head.includes(part))
        return socket.write(found?.[1] ?? whole)
      }
      begin()
      return socket.write(streamHead)
    })
  })
}

/** Calls back for each whole request: is a stream asked for? Knows both framings of HTTP/1.1. */
function answerAll(socket: Socket, answer: (isStream: boolean, head: string) => unknown): void {
  let pending: Buffer = Buffer.alloc(0)
  socket.on('data', (bytes: Buffer) => {
    pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes])
    const end = pending.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = pending.toString('latin1', 0, end)
    const length = /content-length: *(\d+)/i.exec(head)?.[1]
    const isWhole =
      length === undefined
        ? head.startsWith('GET') || pending.subarray(-5).equals(Buffer.from('0\r\n\r\n'))
        : pending.length >= end + 4 + Number(length)
    if (!isWhole) return
    const isStream = pending.subarray(end).includes('"stream":true')
    pending = Buffer.alloc(0)
    answer(isStream, head.slice(0, head.indexOf('\r\n')))
  })
}
