/** The official SDK of Bedrock as a client of the matrix. */
import {
  BedrockRuntimeClient,
  type ContentBlock,
  ConverseCommand,
  type ConverseCommandInput,
  ConverseStreamCommand,
  type ConverseStreamOutput,
  type TokenUsage,
} from '@aws-sdk/client-bedrock-runtime'
import type { Asked, Client, Seen } from './clients.ts'
import { cityTool, question } from './question.ts'

interface Answer {
  readonly content: ContentBlock[]
  readonly stop: string | undefined
  readonly usage: TokenUsage | undefined
}

const stops: Readonly<Record<string, Seen['stop']>> = {
  end_turn: 'end',
  max_tokens: 'length',
  content_filtered: 'filter',
  tool_use: 'tool',
}

const bytes = (data: string) => Buffer.from(data, 'base64')

/** Models of Amazon and of other vendors have their own words for thinking. */
const thinking = (model: string) =>
  model.includes('nova')
    ? { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' } }
    : {
        thinking: { type: 'adaptive', display: 'summarized' },
        output_config: { effort: 'high' },
      }

function requestOf(
  model: string,
  asked: Asked,
  results: { readonly of: Seen; readonly say: string } | undefined,
): ConverseCommandInput {
  const content = [
    { text: question },
    ...(asked.picture
      ? [{ image: { format: 'png', source: { bytes: bytes(asked.picture) } } }]
      : []),
    ...(asked.pdf
      ? [{ document: { format: 'pdf', name: 'page', source: { bytes: bytes(asked.pdf) } } }]
      : []),
    ...(asked.audio ? [{ audio: { format: 'wav', source: { bytes: bytes(asked.audio) } } }] : []),
  ]
  const answers = results?.of.calls.map(({ id, name }) => ({
    toolResult: { toolUseId: id, content: [{ text: `${results.say} ${name}` }] },
  }))
  const tools = [
    ...(asked.tools ?? []).map((name) => ({ toolSpec: { name, inputSchema: { json: cityTool } } })),
    ...(asked.search ? [{ systemTool: { name: 'nova_grounding' } }] : []),
  ]
  const structure = { jsonSchema: { name: 'town', schema: JSON.stringify(asked.schema) } }
  return {
    modelId: model,
    messages: [
      { role: 'user', content },
      ...(results
        ? [
            { role: 'assistant', content: results.of.turn },
            { role: 'user', content: answers },
          ]
        : []),
    ],
    ...(asked.system && {
      system: [
        { text: asked.system },
        ...(asked.isCached ? [{ cachePoint: { type: 'default' } }] : []),
      ],
    }),
    ...(tools.length > 0 && { toolConfig: { tools } }),
    ...(asked.effort && { additionalModelRequestFields: thinking(model) }),
    ...(asked.schema && { outputConfig: { textFormat: { type: 'json_schema', structure } } }),
  } as ConverseCommandInput
}

/** All events of a stream as one response. */
async function collected(stream: AsyncIterable<ConverseStreamOutput>): Promise<Answer> {
  const texts: Record<
    number,
    { text: string; thought: string; signature?: string; input: string }
  > = {}
  const starts: Record<number, { toolUseId?: string; name?: string }> = {}
  const citations: Record<number, unknown[]> = {}
  let stop: string | undefined
  let usage: TokenUsage | undefined
  for await (const { contentBlockStart, contentBlockDelta, messageStop, metadata } of stream) {
    stop = messageStop?.stopReason ?? stop
    usage = metadata?.usage ?? usage
    const at = contentBlockStart?.contentBlockIndex ?? contentBlockDelta?.contentBlockIndex
    if (at === undefined) continue
    texts[at] ??= { text: '', thought: '', input: '' }
    const block = texts[at]
    const { start } = contentBlockStart ?? {}
    if (start?.toolUse !== undefined) starts[at] = start.toolUse
    const { delta } = contentBlockDelta ?? {}
    block.text += delta?.text ?? ''
    block.input += delta?.toolUse?.input ?? ''
    block.thought += delta?.reasoningContent?.text ?? ''
    const signature = delta?.reasoningContent?.signature
    if (signature !== undefined) block.signature = signature
    if (delta?.citation !== undefined) {
      citations[at] ??= []
      citations[at].push(delta.citation)
    }
  }
  const content = Object.entries(texts).map(([at, block]) => {
    const { text, thought, signature, input } = block
    const start = starts[Number(at)]
    if (start !== undefined) return { toolUse: { ...start, input: JSON.parse(input || '{}') } }
    if (thought !== '' || signature !== undefined) {
      return { reasoningContent: { reasoningText: { text: thought, signature } } }
    }
    const cited = citations[Number(at)]
    return cited === undefined
      ? { text }
      : { citationsContent: { content: [{ text }], citations: cited } }
  })
  return { content: content as unknown as ContentBlock[], stop, usage }
}

export const bedrock = (base: string) =>
  new BedrockRuntimeClient({
    endpoint: base,
    region: 'us-west-2',
    maxAttempts: 1,
    credentials: { accessKeyId: 'client', secretAccessKey: 'client' },
  })

export const converse: Client = {
  name: 'Converse',
  lacks: [],
  async ask(base, model, asked, isStreamed, results) {
    const client = bedrock(base)
    const request = requestOf(model, asked, results)
    const { content, stop, usage } = isStreamed
      ? await client
          .send(new ConverseStreamCommand(request))
          .catch(withStatus)
          .then(({ stream }) => collected(stream ?? noEvents()))
      : await client
          .send(new ConverseCommand(request))
          .catch(withStatus)
          .then((answer) => ({
            content: answer.output?.message?.content ?? [],
            stop: answer.stopReason,
            usage: answer.usage,
          }))
    const cited = content.flatMap(({ citationsContent: one }) => (one ? [one] : []))
    const texts = [
      ...content.map(({ text = '' }) => text),
      ...cited.flatMap((one) => (one.content ?? []).map(({ text = '' }) => text)),
    ]
    return {
      text: texts.join(''),
      thinking: content.map(({ reasoningContent: one }) => one?.reasoningText?.text ?? '').join(''),
      calls: content.flatMap(({ toolUse: one }) =>
        one === undefined
          ? []
          : [{ id: one.toolUseId ?? '', name: one.name ?? '', input: JSON.stringify(one.input) }],
      ),
      stop: stops[stop ?? ''],
      cached: usage?.cacheReadInputTokens ?? 0,
      sources: cited
        .flatMap((one) => one.citations ?? [])
        .flatMap(({ location }) => (location?.web?.url ? [location.web.url] : [])),
      turn: content,
    }
  },
}

async function* noEvents(): AsyncIterable<ConverseStreamOutput> {}

/** Errors of this SDK have their status elsewhere. */
export function withStatus(error: { $metadata?: { httpStatusCode?: number } }): never {
  throw Object.assign(error, { status: error.$metadata?.httpStatusCode })
}
