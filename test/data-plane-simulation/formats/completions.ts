/** Chat Completions, as vendor A speaks them. */
import { completionsPlaces } from '../../../src/engines/messages/formats/completions/places.ts'
import { type BilledUsage, type ChatFormat, contentOf, endsEarly, lastMessage } from './format.ts'

export const completions: ChatFormat = {
  places: completionsPlaces,
  path: '/v1/chat/completions',
  asksForUsage: true,
  errorEvents: ['data: {"error"'],
  request(asked) {
    const { tag, isStream, wantsUsage, system, aside } = asked
    const usage = wantsUsage && { stream_options: { include_usage: true } }
    const messages = [
      ...(system === undefined ? [] : [{ role: 'system', content: system }]),
      ...(aside === undefined
        ? []
        : [{ role: 'user', content: [{ type: 'reasoning_text', text: aside }] }]),
      { role: 'user', content: contentOf(asked) },
    ]
    return { model: 'm', user: tag, ...(isStream && { stream: true, ...usage }), messages }
  },
  questionOf: lastMessage,
  repeatedText: () => undefined,
  whole({ tag, pieces, usage }) {
    const message = { role: 'assistant', content: pieces.join('') }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    const object = 'chat.completion'
    return { id: tag, object, created: 1, model: 'm', choices, usage: usageOf(usage) }
  },
  events(said) {
    const { tag, pieces, usage } = said
    const common = { id: tag, object: 'chat.completion.chunk', created: 1, model: 'm' }
    const line = (fields: object) => `data: ${JSON.stringify({ ...common, ...fields })}\n\n`
    const event = (delta: object, finish: string | null) =>
      line({ choices: [{ index: 0, delta, finish_reason: finish }] })
    const first = event({ role: 'assistant', content: '' }, null)
    const early = endsEarly(said) ? 'stop' : null
    const texts = pieces.map((content) => event({ content }, early)).join('')
    const last = line({ choices: [], usage: usageOf(usage) })
    return `${first}${texts}${event({}, 'stop')}${last}data: [DONE]\n\n`
  },
  error: (tag) => ({ error: { message: `${tag} fails`, type: 'server' } }),
  textOfEvent(data) {
    const { choices = [] } = data as {
      choices?: readonly { delta?: { content?: string } }[]
    }
    return choices.map(({ delta }) => delta?.content ?? '').join('')
  },
  textOfWhole(response) {
    const { choices } = response as { choices?: readonly { message: { content: string } }[] }
    return choices?.[0]?.message.content
  },
}

const usageOf = ({ input, output }: BilledUsage) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
})
