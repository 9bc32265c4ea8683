/** Official SDKs behind one interface: a request in words of no format, and what the program sees of the response. */
import OpenAI from 'openai'
import { cityTool, question } from './question.ts'

type Fields = Readonly<Record<string, unknown>>

/** What a program asks for. Every member that is not set is not asked for. */
export interface Asked {
  readonly system?: string
  readonly effort?: 'high'
  /** The names of tools, which all take a city. */
  readonly tools?: readonly string[]
  readonly schema?: Fields
  /** Base64. */
  readonly picture?: string
  readonly pdf?: string
  readonly audio?: string
  /** Whether the system prompt is marked for the vendor's cache. */
  readonly isCached?: true
  readonly search?: true
}

export interface Call {
  readonly id: string
  readonly name: string
  /** JSON. */
  readonly input: string
}

/** What the program sees. */
export interface Seen {
  readonly text: string
  readonly thinking: string
  readonly calls: readonly Call[]
  readonly stop: 'end' | 'length' | 'filter' | 'tool' | undefined
  /** Tokens of the prompt that came from a cache. */
  readonly cached: number
  /** Addresses of pages that the text is from. */
  readonly sources: readonly string[]
  /** The turn of the model, as the SDK gave it; it goes back in the next request. */
  readonly turn: unknown
}

export interface Client {
  readonly name: string
  /** Members of `Asked` that the format has no word for. */
  readonly lacks: readonly (keyof Asked)[]
  /** `results`: the turn that asked for tools, and what each of them said. */
  ask(
    base: string,
    model: string,
    asked: Asked,
    isStreamed: boolean,
    results?: { readonly of: Seen; readonly say: string },
  ): Promise<Seen>
}

const openai = (base: string) =>
  new OpenAI({ baseURL: `${base}/v1`, apiKey: 'client-key', maxRetries: 0 })

/** One object of all that a stream of chunks says about its only choice. */
async function joined(
  stream: AsyncIterable<OpenAI.ChatCompletionChunk>,
): Promise<{ message: Fields; finish: string | null; usage: Fields }> {
  const texts: Record<string, string> = {}
  const calls: { id: string; type: string; function: { name: string; arguments: string } }[] = []
  const annotations: unknown[] = []
  let finish: string | null = null
  let usage: Fields = {}
  for await (const { choices, usage: counts } of stream) {
    usage = (counts ?? usage) as Fields
    const [choice] = choices
    if (choice === undefined) continue
    finish = choice.finish_reason ?? finish
    const { tool_calls, ...rest } = choice.delta
    for (const [name, value] of Object.entries(rest)) {
      if (name === 'annotations') annotations.push(...(value as unknown as unknown[]))
      else if (typeof value === 'string') texts[name] = (texts[name] ?? '') + value
    }
    for (const { index, id = '', function: part } of tool_calls ?? []) {
      calls[index] ??= { id, type: 'function', function: { name: part?.name ?? '', arguments: '' } }
      calls[index].function.arguments += part?.arguments ?? ''
    }
  }
  const tool_calls = calls.length > 0 ? { tool_calls: calls } : {}
  const sources = annotations.length > 0 ? { annotations } : {}
  return { message: { ...texts, role: 'assistant', ...tool_calls, ...sources }, finish, usage }
}

const stopsOfChat = { stop: 'end', length: 'length', content_filter: 'filter', tool_calls: 'tool' }

const completions: Client = {
  name: 'Completions',
  lacks: [],
  async ask(base, model, asked, isStreamed, results) {
    const mark = asked.isCached && { cache_control: { type: 'ephemeral' } }
    const system = asked.system && [{ type: 'text', text: asked.system, ...mark }]
    const content = [
      { type: 'text', text: question },
      ...(asked.picture
        ? [{ type: 'image_url', image_url: { url: `data:image/png;base64,${asked.picture}` } }]
        : []),
      ...(asked.pdf ? [{ type: 'file', file: fileOf(asked.pdf) }] : []),
      ...(asked.audio
        ? [{ type: 'input_audio', input_audio: { data: asked.audio, format: 'wav' } }]
        : []),
    ]
    const turns = results && [
      results.of.turn,
      ...results.of.calls.map(({ id, name }) => ({
        role: 'tool',
        tool_call_id: id,
        content: `${results.say} ${name}`,
      })),
    ]
    const request = {
      model,
      messages: [
        ...(system ? [{ role: 'system', content: system }] : []),
        { role: 'user', content },
        ...(turns ?? []),
      ],
      ...(asked.effort && { reasoning_effort: asked.effort }),
      ...(asked.tools && {
        tools: asked.tools.map((name) => ({
          type: 'function',
          function: { name, parameters: cityTool },
        })),
      }),
      ...(asked.schema && {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'place', strict: true, schema: asked.schema },
        },
      }),
      ...(asked.search && { web_search_options: {} }),
    } as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming
    const client = openai(base).chat.completions
    let answer: Awaited<ReturnType<typeof joined>>
    if (isStreamed) {
      const options = { include_usage: true }
      const stream = await client.create({ ...request, stream: true, stream_options: options })
      answer = await joined(stream)
    } else {
      const { choices, usage } = await client.create(request)
      const message = (choices[0]?.message ?? {}) as unknown as Fields
      answer = {
        message,
        finish: choices[0]?.finish_reason ?? null,
        usage: (usage ?? {}) as Fields,
      }
    }
    const { message, finish, usage } = answer
    const details = usage.prompt_tokens_details as { cached_tokens?: number } | undefined
    return {
      text: String(message.content ?? ''),
      thinking: String(message.reasoning_content ?? ''),
      calls: ((message.tool_calls ?? []) as { id: string; function: Fields }[]).map((call) => ({
        id: call.id,
        name: String(call.function.name),
        input: String(call.function.arguments),
      })),
      stop: (stopsOfChat as Record<string, Seen['stop']>)[finish ?? ''],
      cached: details?.cached_tokens ?? 0,
      sources: ((message.annotations ?? []) as { url_citation?: { url: string } }[]).map(
        ({ url_citation: place }) => place?.url ?? '',
      ),
      turn: message,
    }
  },
}

const fileOf = (pdf: string) => ({
  filename: 'a.pdf',
  file_data: `data:application/pdf;base64,${pdf}`,
})

const responses: Client = {
  name: 'Responses',
  lacks: ['audio', 'isCached'],
  async ask(base, model, asked, isStreamed, results) {
    const content = [
      { type: 'input_text', text: question },
      ...(asked.picture
        ? [{ type: 'input_image', image_url: `data:image/png;base64,${asked.picture}` }]
        : []),
      ...(asked.pdf ? [{ type: 'input_file', ...fileOf(asked.pdf) }] : []),
    ]
    const turns = results && [
      ...(results.of.turn as unknown[]),
      ...results.of.calls.map(({ id, name }) => ({
        type: 'function_call_output',
        call_id: id,
        output: `${results.say} ${name}`,
      })),
    ]
    const request = {
      model,
      store: false,
      include: ['reasoning.encrypted_content'],
      input: [{ role: 'user', content }, ...(turns ?? [])],
      ...(asked.system && { instructions: asked.system }),
      ...(asked.effort && { reasoning: { effort: asked.effort, summary: 'auto' } }),
      tools: [
        ...(asked.tools ?? []).map((name) => ({
          type: 'function',
          name,
          parameters: cityTool,
          strict: true,
        })),
        ...(asked.search ? [{ type: 'web_search' }] : []),
      ],
      ...(asked.schema && {
        text: {
          format: { type: 'json_schema', name: 'place', strict: true, schema: asked.schema },
        },
      }),
    } as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming
    const client = openai(base).responses
    const answer = isStreamed
      ? await client
          .stream(request as OpenAI.Responses.ResponseCreateParams as never)
          .finalResponse()
      : await client.create(request)
    const { output, usage, status, incomplete_details: why } = answer
    const calls = output.flatMap((item) => (item.type === 'function_call' ? [item] : []))
    const texts = output.flatMap((item) => (item.type === 'message' ? item.content : []))
    const hasFilter =
      why?.reason === 'content_filter' || texts.some(({ type }) => type === 'refusal')
    const ended = status === 'completed' && !hasFilter
    return {
      text: answer.output_text,
      thinking: output
        .flatMap((item) => (item.type === 'reasoning' ? item.summary : []))
        .map(({ text }) => text)
        .join(''),
      calls: calls.map(({ call_id, name, arguments: input }) => ({ id: call_id, name, input })),
      stop: ended ? (calls.length > 0 ? 'tool' : 'end') : hasFilter ? 'filter' : 'length',
      cached: usage?.input_tokens_details.cached_tokens ?? 0,
      sources: texts
        .flatMap((part) => (part.type === 'output_text' ? part.annotations : []))
        .flatMap((one) => (one.type === 'url_citation' ? [one.url] : [])),
      turn: output,
    }
  },
}

export const clientsOfVendorA: readonly Client[] = [completions, responses]
