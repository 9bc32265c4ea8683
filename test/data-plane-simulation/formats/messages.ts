/** Messages, as vendor C speaks them. */
import { messagesPlaces } from '../../../src/engines/messages/formats/messages/places.ts'
import { type BilledUsage, type ChatFormat, contentOf, endsEarly, lastMessage } from './format.ts'

/** Counts of a request do not include those of its compactions. */
function usageOf({ input, output, compacted }: BilledUsage) {
  if (compacted === undefined) return { input_tokens: input, output_tokens: output }
  const tokens = (one: Pick<BilledUsage, 'input' | 'output'>) => ({
    input_tokens: one.input,
    output_tokens: one.output,
  })
  const own = tokens({ input: input - compacted.input, output: output - compacted.output })
  const iterations = [
    { type: 'compaction', ...tokens(compacted) },
    { type: 'message', ...own },
  ]
  return { ...own, iterations }
}

export const messages: ChatFormat = {
  places: messagesPlaces,
  path: '/v1/messages',
  asksForUsage: false,
  errorEvents: ['event: error'],
  request(asked) {
    const { tag, isStream, system } = asked
    return {
      model: 'm',
      max_tokens: 100,
      metadata: { user_id: tag },
      ...(isStream && { stream: true }),
      ...(system !== undefined && { system }),
      messages: [{ role: 'user', content: contentOf(asked) }],
    }
  },
  questionOf: lastMessage,
  repeatedText: () => undefined,
  whole({ tag, pieces, usage: billed }) {
    const content = [{ type: 'text', text: pieces.join('') }]
    const usage = usageOf(billed)
    const common = { id: tag, type: 'message', role: 'assistant', model: 'm' }
    return { ...common, content, stop_reason: 'end_turn', stop_sequence: null, usage }
  },
  events(said) {
    const { tag, pieces, usage: billed } = said
    const event = (type: string, fields: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
    const common = { id: tag, type: 'message', role: 'assistant', model: 'm', content: [] }
    const last = usageOf(billed)
    const usage = { input_tokens: last.input_tokens, output_tokens: 1 }
    const message = { ...common, stop_reason: null, stop_sequence: null, usage }
    const delta = (text: string) =>
      event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
    const stop = { stop_reason: 'end_turn', stop_sequence: null }
    const early = endsEarly(said) ? event('message_delta', { delta: stop, usage }) : ''
    return [
      event('message_start', { message }),
      event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      ...pieces.map((piece) => `${delta(piece)}${early}`),
      event('content_block_stop', { index: 0 }),
      event('message_delta', { delta: stop, usage: last }),
      event('message_stop', {}),
    ].join('')
  },
  error: (tag) => ({ type: 'error', error: { type: 'api_error', message: `${tag} fails` } }),
  textOfEvent(data) {
    const { delta, content_block: block } = data as {
      delta?: { text?: string }
      content_block?: { text?: string }
    }
    return block?.text ?? delta?.text ?? ''
  },
  textOfWhole(response) {
    const { content } = response as { content?: readonly { text: string }[] }
    return content?.map(({ text }) => text).join('')
  },
}
