/** Responses, as vendor A speaks them. Their streams repeat a text in several events after its pieces. */
import { responsesPlaces } from '../../../src/engines/messages/formats/responses/places.ts'
import { type ChatFormat, type Said, textOfContent } from './format.ts'

interface Item {
  readonly content?: readonly { readonly text?: string }[]
}

interface EventData {
  readonly type?: string
  readonly delta?: string
  readonly text?: string
  readonly part?: { readonly text?: string }
  readonly item?: Item
  readonly response?: { readonly output?: readonly Item[] }
}

const textOfItems = (items: readonly Item[]): string =>
  items.flatMap(({ content = [] }) => content.map(({ text = '' }) => text)).join('')

function itemOf({ tag, pieces }: Said, status: string) {
  const content = [{ type: 'output_text', text: pieces.join(''), annotations: [] }]
  return { id: `msg_${tag}`, type: 'message', role: 'assistant', status, content }
}

function responseOf(said: Said, isOver: boolean) {
  const { tag, usage } = said
  const common = { id: tag, object: 'response', created_at: 1, model: 'm', error: null }
  const billed = {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.input + usage.output,
  }
  return isOver
    ? { ...common, status: 'completed', output: [itemOf(said, 'completed')], usage: billed }
    : { ...common, status: 'in_progress', output: [], usage: null }
}

export const responses: ChatFormat = {
  places: responsesPlaces,
  path: '/v1/responses',
  asksForUsage: false,
  errorEvents: ['response.failed', 'event: error'],
  request({ tag, isStream, system, question, hasParts }) {
    const content = hasParts ? [{ type: 'input_text', text: question }] : question
    return {
      model: 'm',
      metadata: { user: tag },
      ...(isStream && { stream: true }),
      ...(system !== undefined && { instructions: system }),
      input: [{ role: 'user', content }],
    }
  },
  questionOf(request) {
    const { input } = request as { readonly input: readonly { readonly content: unknown }[] }
    return textOfContent(input.at(-1)?.content)
  },
  whole: (said) => responseOf(said, true),
  events(said) {
    const { tag, pieces } = said
    let number = 0
    const event = (type: string, fields: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...fields })}\n\n`
    const item = { output_index: 0 }
    const part = { ...item, item_id: `msg_${tag}`, content_index: 0 }
    const empty = { ...said, pieces: [] }
    const text = pieces.join('')
    return [
      event('response.created', { response: responseOf(said, false) }),
      event('response.in_progress', { response: responseOf(said, false) }),
      event('response.output_item.added', {
        ...item,
        item: { ...itemOf(empty, 'in_progress'), content: [] },
      }),
      event('response.content_part.added', {
        ...part,
        part: { type: 'output_text', text: '', annotations: [] },
      }),
      ...pieces.map((delta) => event('response.output_text.delta', { ...part, delta })),
      event('response.output_text.done', { ...part, text }),
      event('response.content_part.done', {
        ...part,
        part: { type: 'output_text', text, annotations: [] },
      }),
      event('response.output_item.done', { ...item, item: itemOf(said, 'completed') }),
      event('response.completed', { response: responseOf(said, true) }),
    ].join('')
  },
  error: (tag) => ({ error: { message: `${tag} fails`, type: 'server_error' } }),
  textOfEvent(data) {
    const { type, delta } = data as EventData
    return type === 'response.output_text.delta' ? (delta ?? '') : ''
  },
  repeatedText(data) {
    const { type, text, part, item, response } = data as EventData
    switch (type) {
      case 'response.output_text.done':
        return text
      case 'response.content_part.done':
        return part?.text
      case 'response.output_item.done':
        return item && textOfItems([item])
      case 'response.completed':
        return response && textOfItems(response.output ?? [])
      default:
        return undefined
    }
  },
  textOfWhole(response) {
    const { output } = response as { readonly output?: readonly Item[] }
    return output && textOfItems(output)
  },
}
