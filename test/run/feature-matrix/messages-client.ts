/** The official SDK of the Messages format as a client of the matrix. */
import Anthropic from '@anthropic-ai/sdk'
import type { Asked, Client, Seen } from './clients.ts'
import { cityTool, question } from './question.ts'

const stops = {
  end_turn: 'end',
  max_tokens: 'length',
  refusal: 'filter',
  tool_use: 'tool',
}

/** The members of a request that say neither the model nor whether there is a stream. */
export function messagesRequest(
  asked: Asked,
  results: { readonly of: Seen; readonly say: string } | undefined,
): Omit<Anthropic.MessageCreateParamsNonStreaming, 'model'> {
  const mark = asked.isCached && { cache_control: { type: 'ephemeral' } }
  const source = (media_type: string, data: string) => ({ type: 'base64', media_type, data })
  const content = [
    { type: 'text', text: question },
    ...(asked.picture ? [{ type: 'image', source: source('image/png', asked.picture) }] : []),
    ...(asked.pdf ? [{ type: 'document', source: source('application/pdf', asked.pdf) }] : []),
  ]
  const turns = results && [
    { role: 'assistant', content: results.of.turn },
    {
      role: 'user',
      content: results.of.calls.map(({ id, name }) => ({
        type: 'tool_result',
        tool_use_id: id,
        content: `${results.say} ${name}`,
      })),
    },
  ]
  const output_config = {
    ...(asked.effort && { effort: asked.effort }),
    ...(asked.schema && { format: { type: 'json_schema', schema: asked.schema } }),
  }
  return {
    max_tokens: 9_000,
    ...(asked.system && { system: [{ type: 'text', text: asked.system, ...mark }] }),
    messages: [{ role: 'user', content }, ...(turns ?? [])],
    ...(asked.effort && { thinking: { type: 'adaptive', display: 'summarized' } }),
    ...(Object.keys(output_config).length > 0 && { output_config }),
    ...((asked.tools || asked.search) && {
      tools: [
        ...(asked.tools ?? []).map((name) => ({ name, input_schema: cityTool })),
        ...(asked.search ? [{ type: 'web_search_20250305', name: 'web_search' }] : []),
      ],
    }),
  } as unknown as Omit<Anthropic.MessageCreateParamsNonStreaming, 'model'>
}

/** What the program sees of a response. */
export function seenOfMessage(answer: Anthropic.Message): Seen {
  const texts = answer.content.filter((block) => block.type === 'text')
  return {
    text: texts.map(({ text }) => text).join(''),
    thinking: answer.content
      .map((block) => (block.type === 'thinking' ? block.thinking : ''))
      .join(''),
    calls: answer.content.flatMap((block) =>
      block.type === 'tool_use'
        ? [{ id: block.id, name: block.name, input: JSON.stringify(block.input) }]
        : [],
    ),
    stop: (stops as Record<string, Seen['stop']>)[answer.stop_reason ?? ''],
    cached: answer.usage.cache_read_input_tokens ?? 0,
    sources: texts
      .flatMap(({ citations }) => citations ?? [])
      .flatMap((one) => (one.type === 'web_search_result_location' ? [one.url] : [])),
    turn: answer.content,
  }
}

export const messages: Client = {
  name: 'Messages',
  lacks: ['audio'],
  async ask(base, model, asked, isStreamed, results) {
    const request = { model, ...messagesRequest(asked, results) }
    const client = new Anthropic({ baseURL: base, apiKey: 'client-key', maxRetries: 0 })
    return seenOfMessage(
      isStreamed
        ? await client.messages.stream(request).finalMessage()
        : await client.messages.create(request),
    )
  },
}
