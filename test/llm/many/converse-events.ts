/** Streams in the converse format with many events or items of one kind. */
import { EventStreamCodec } from '@smithy/core/event-streams'
import { times } from './items.ts'

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString('utf8'),
  (text) => Buffer.from(text),
)

/** Returns a frame with an event. */
const frame = (type: string, event: unknown): Uint8Array =>
  codec.encode({
    headers: {
      ':message-type': { type: 'string', value: 'event' },
      ':event-type': { type: 'string', value: type },
    },
    body: Buffer.from(JSON.stringify(event)),
  })

const start = frame('messageStart', { role: 'assistant' })
const end = [
  frame('messageStop', { stopReason: 'end_turn' }),
  frame('metadata', { usage: { inputTokens: 1, outputTokens: 2 } }),
]
const delta = (contentBlockIndex: number, one: object) =>
  frame('contentBlockDelta', { contentBlockIndex, delta: one })
const whole = (frames: readonly Uint8Array[]) => Buffer.concat([start, ...frames, ...end])

const call = (index: number) => [
  frame('contentBlockStart', {
    contentBlockIndex: index,
    start: { toolUse: { toolUseId: `c${index}`, name: 'f' } },
  }),
  delta(index, { toolUse: { input: '{}' } }),
]

const citation = (at: number) => ({
  title: 't',
  location: { web: { url: `http://x/${at}` } },
  sourceContent: [{ text: 'x' }],
})

export const eventsOfConverse: Readonly<Record<string, (n: number) => Uint8Array>> = {
  texts: (n) => whole(times(n, () => delta(0, { text: 'x' }))),
  textBlocks: (n) => whole(times(n, (at) => delta(at, { text: 'x' }))),
  callsOpen: (n) => whole(times(n, call).flat()),
  citations: (n) => whole(times(n, (at) => delta(0, { citation: citation(at) }))),
  citationBlocks: (n) => whole(times(n, (at) => delta(at, { citation: citation(at) }))),
  thinking: (n) => whole(times(n, (at) => delta(at, { reasoningContent: { signature: 's' } }))),
}
