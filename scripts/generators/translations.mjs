// docs/translations.md: what becomes of each member of a request at the other vendors, found out by translation.
import { familyCatalog } from '../../src/engines/messages/catalog/catalog.ts'
import { clientFormats, providerFormats } from '../../src/engines/messages/formats/index.ts'
import { LlmError } from '../../src/engines/messages/llm-error.ts'
import { translate } from '../../src/engines/messages/request/translation.ts'

const schema = {
  type: 'object',
  properties: { a: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
}
const format = { type: 'json_schema', json_schema: { name: 'n', schema } }
const chatTool = (more = {}) => ({
  type: 'function',
  function: { name: 'f', parameters: schema, ...more },
})
const tool = (more = {}) => ({ name: 'f', input_schema: schema, ...more })
const responsesTool = (more = {}) => ({ type: 'function', name: 'f', parameters: schema, ...more })
const cache = { cache_control: { type: 'ephemeral' } }
const hour = { cache_control: { type: 'ephemeral', ttl: '1h' } }
const part = (more) => [{ role: 'user', content: [{ type: 'text', text: 'q', ...more }] }]
const file = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' }
const later = (role) => [
  { role: 'user', content: 'q' },
  { role: 'assistant', content: 'a' },
  { role: 'user', content: 'q' },
  { role, content: 's' },
]

/** Members with a value, by the name in the table. `with` is in both requests; `set` only in the second one. */
const member = (name, value, more) => ({ name, set: { [name]: value }, with: more ?? {} })
const named = (name, set, more) => ({ name, set, with: more ?? {} })

const clients = [
  {
    title: 'Completions',
    format: clientFormats.Completions,
    base: { messages: [{ role: 'user', content: 'q' }] },
    providers: ['messages', 'generate-content', 'converse'],
    members: [
      member('frequency_penalty', 0.5),
      member('functions', [{ name: 'f' }]),
      member('logit_bias', { 50: 1 }),
      member('logprobs', true),
      member('max_completion_tokens', 9),
      member('max_tokens', 9),
      named(
        'messages[].content[].cache_control',
        { messages: part(cache) },
        { messages: part({}) },
      ),
      named('… with `ttl: 1h`', { messages: part(hour) }, { messages: part(cache) }),
      member('metadata', { a: 'b' }),
      named('modalities: audio', { modalities: ['audio'] }),
      named('modalities: image', { modalities: ['image'] }),
      member('n', 2),
      member('parallel_tool_calls', false, { tools: [chatTool()] }),
      member('prediction', { type: 'content', content: 'x' }),
      member('presence_penalty', 0.5),
      member('prompt_cache_key', 'k'),
      member('reasoning_effort', 'high'),
      named('response_format: json_object', { response_format: { type: 'json_object' } }),
      named('response_format: json_schema', { response_format: format }),
      member('safety_identifier', 'u'),
      member('seed', 7),
      member('service_tier', 'flex'),
      member('stop', ['x']),
      member('store', true),
      member('stream', true),
      member('temperature', 0.5),
      member('tool_choice', 'required', { tools: [chatTool()] }),
      named('tool_choice: none', { tool_choice: 'none' }, { tools: [chatTool()] }),
      member('tools', [chatTool()]),
      named(
        'tools[].function.strict',
        { tools: [chatTool({ strict: true })] },
        { tools: [chatTool()] },
      ),
      member('top_logprobs', 2),
      member('top_p', 0.5),
      member('user', 'u'),
      member('verbosity', 'low'),
      member('web_search_options', {}),
    ],
  },
  {
    title: 'Messages',
    format: clientFormats.Messages,
    base: { messages: [{ role: 'user', content: 'q' }], max_tokens: 9_000 },
    providers: ['completions', 'generate-content', 'converse'],
    members: [
      member('cache_control', cache.cache_control),
      member('container', 'c'),
      member('context_management', { edits: [] }),
      member('inference_geo', 'us'),
      member('mcp_servers', [{ type: 'url', url: 'https://x.test', name: 'm' }]),
      named(
        'messages[].content[].cache_control',
        { messages: part(cache) },
        { messages: part({}) },
      ),
      named('… with `ttl: 1h`', { messages: part(hour) }, { messages: part(cache) }),
      named(
        'citations of documents',
        {
          messages: [
            {
              role: 'user',
              content: [
                { type: 'document', source: file, citations: { enabled: true } },
                { type: 'text', text: 'q' },
              ],
            },
          ],
        },
        {
          messages: [
            {
              role: 'user',
              content: [
                { type: 'document', source: file },
                { type: 'text', text: 'q' },
              ],
            },
          ],
        },
      ),
      named(
        'system messages in their place',
        { messages: later('system'), system: undefined },
        { messages: later('system').slice(0, 3), system: 's' },
      ),
      named('metadata.user_id', { metadata: { user_id: 'u' } }),
      named('output_config.effort', { output_config: { effort: 'high' } }),
      named('output_config.format', { output_config: { format: { type: 'json_schema', schema } } }),
      member('service_tier', 'standard_only'),
      member('speed', 'fast'),
      member('stop_sequences', ['x']),
      member('stream', true),
      member('system', 's'),
      member('temperature', 0.5),
      named('thinking: enabled', { thinking: { type: 'enabled', budget_tokens: 2_000 } }),
      named('thinking: adaptive', { thinking: { type: 'adaptive' } }),
      named(
        'thinking.block_binding',
        {
          thinking: {
            type: 'adaptive',
            block_binding: { prefix_mismatch_behavior: 'drop_block' },
          },
        },
        { thinking: { type: 'adaptive' } },
      ),
      named(
        'thinking.display',
        { thinking: { type: 'adaptive', display: 'omitted' } },
        { thinking: { type: 'adaptive' } },
      ),
      member('tool_choice', { type: 'any' }, { tools: [tool()] }),
      named('tool_choice: none', { tool_choice: { type: 'none' } }, { tools: [tool()] }),
      named(
        'tool_choice.disable_parallel_tool_use',
        { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
        { tools: [tool()], tool_choice: { type: 'auto' } },
      ),
      member('tools', [tool()]),
      named('tools[].cache_control', { tools: [tool(cache)] }, { tools: [tool()] }),
      named('tools[].strict', { tools: [tool({ strict: true })] }, { tools: [tool()] }),
      member('top_k', 5),
      member('top_p', 0.5),
    ],
  },
  {
    title: 'Responses',
    format: clientFormats.Responses,
    base: { input: 'q' },
    providers: ['completions', 'messages', 'generate-content', 'converse'],
    members: [
      member('background', true),
      member('context_management', [{ type: 'compaction' }]),
      member('conversation', 'c'),
      member('include', ['reasoning.encrypted_content']),
      member('instructions', 's'),
      member('max_output_tokens', 9),
      member('max_tool_calls', 3),
      member('metadata', { a: 'b' }),
      member('parallel_tool_calls', false, { tools: [responsesTool()] }),
      member('previous_response_id', 'r'),
      member('prompt', { id: 'p' }),
      member('prompt_cache_key', 'k'),
      named('reasoning.effort', { reasoning: { effort: 'high' } }),
      named(
        'reasoning.summary',
        { reasoning: { effort: 'high', summary: 'auto' } },
        { reasoning: { effort: 'high' } },
      ),
      member('safety_identifier', 'u'),
      member('service_tier', 'flex'),
      member('store', true),
      member('stream', true),
      member('temperature', 0.5),
      named('text.format', { text: { format: { type: 'json_schema', name: 'n', schema } } }),
      named('text.verbosity', { text: { verbosity: 'low' } }),
      member('tool_choice', 'required', { tools: [responsesTool()] }),
      member('tools', [responsesTool()]),
      named(
        'tools[].strict',
        { tools: [responsesTool({ strict: true })] },
        { tools: [responsesTool()] },
      ),
      named('tools: web_search', { tools: [{ type: 'web_search' }] }),
      member('top_p', 0.5),
      member('truncation', 'auto'),
      member('user', 'u'),
    ],
  },
]

const declaration = (more = {}) => ({ name: 'f', parametersJsonSchema: schema, ...more })
const config = (more) => ({ generationConfig: more })
const question = { role: 'user', parts: [{ text: 'q' }] }
const declared = { tools: [{ functionDeclarations: [declaration()] }] }
const calling = (functionCallingConfig) => ({ toolConfig: { functionCallingConfig } })

clients.push({
  title: 'GenerateContent',
  format: clientFormats.GenerateContent,
  base: { contents: [question] },
  providers: ['completions', 'messages', 'converse'],
  members: [
    member('cachedContent', 'cachedContents/1'),
    named('contents[].parts[].executableCode', {
      contents: [question, { role: 'model', parts: [{ executableCode: { code: 'x' } }] }],
    }),
    named('contents[].parts[].inlineData', {
      contents: [
        { parts: [{ text: 'q' }, { inlineData: { mimeType: 'image/png', data: 'AA==' } }] },
      ],
    }),
    named('generationConfig.candidateCount', config({ candidateCount: 2 })),
    named('generationConfig.frequencyPenalty', config({ frequencyPenalty: 0.5 })),
    named('generationConfig.maxOutputTokens', config({ maxOutputTokens: 9 })),
    named('generationConfig.mediaResolution', config({ mediaResolution: 'MEDIA_RESOLUTION_LOW' })),
    named('generationConfig.presencePenalty', config({ presencePenalty: 0.5 })),
    named('generationConfig.responseJsonSchema', {
      ...config({ responseMimeType: 'application/json', responseJsonSchema: schema }),
    }),
    named('generationConfig.responseLogprobs', config({ responseLogprobs: true })),
    named('generationConfig.responseMimeType', config({ responseMimeType: 'application/json' })),
    named('generationConfig.responseModalities: AUDIO', config({ responseModalities: ['AUDIO'] })),
    named('generationConfig.responseSchema', {
      ...config({ responseMimeType: 'application/json', responseSchema: { type: 'OBJECT' } }),
    }),
    named('generationConfig.seed', config({ seed: 7 })),
    named('generationConfig.speechConfig', config({ speechConfig: {} })),
    named('generationConfig.stopSequences', config({ stopSequences: ['x'] })),
    named('generationConfig.temperature', config({ temperature: 0.5 })),
    named('generationConfig.thinkingConfig', {
      ...config({ thinkingConfig: { thinkingBudget: 2_000 }, maxOutputTokens: 9_000 }),
    }),
    named('generationConfig.topK', config({ topK: 5 })),
    named('generationConfig.topP', config({ topP: 0.5 })),
    member('labels', { a: 'b' }),
    member('safetySettings', [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'OFF' }]),
    member('serviceTier', 'flex'),
    named('stream', { stream: true }),
    named('systemInstruction', { systemInstruction: { parts: [{ text: 's' }] } }),
    named('toolConfig: ANY', calling({ mode: 'ANY' }), declared),
    named('toolConfig: NONE', calling({ mode: 'NONE' }), declared),
    named('tools[].codeExecution', { tools: [{ codeExecution: {} }] }),
    named('tools[].functionDeclarations', declared),
    named('tools[].googleSearch', { tools: [{ googleSearch: {} }] }),
    named('tools[].urlContext', { tools: [{ urlContext: {} }] }),
  ],
})

const spec = (more = {}) => ({
  toolSpec: { name: 'f', inputSchema: { json: schema }, ...more },
})
const block = (...content) => ({ messages: [{ role: 'user', content }] })
const specified = { toolConfig: { tools: [spec()] } }
const modelFields = (more) => ({ additionalModelRequestFields: more })

clients.push({
  title: 'Converse',
  format: clientFormats.Converse,
  base: block({ text: 'q' }),
  providers: ['completions', 'messages', 'generate-content'],
  members: [
    named('additionalModelRequestFields: other', modelFields({ other: 1 })),
    named('additionalModelRequestFields.reasoningConfig', {
      ...modelFields({ reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' } }),
    }),
    named('additionalModelRequestFields.thinking', {
      ...modelFields({ thinking: { type: 'enabled', budget_tokens: 2_000 } }),
      inferenceConfig: { maxTokens: 9_000 },
    }),
    named(
      'additionalModelRequestFields.thinking.display',
      modelFields({ thinking: { type: 'adaptive', display: 'omitted' } }),
      modelFields({ thinking: { type: 'adaptive' } }),
    ),
    named('additionalModelRequestFields.top_k', modelFields({ top_k: 5 })),
    member('additionalModelResponseFieldPaths', ['/a']),
    member('guardrailConfig', { guardrailIdentifier: 'g', guardrailVersion: '1' }),
    named('inferenceConfig.maxTokens', { inferenceConfig: { maxTokens: 9 } }),
    named('inferenceConfig.stopSequences', { inferenceConfig: { stopSequences: ['x'] } }),
    named('inferenceConfig.temperature', { inferenceConfig: { temperature: 0.5 } }),
    named('inferenceConfig.topP', { inferenceConfig: { topP: 0.5 } }),
    named(
      'messages[].content[].cachePoint',
      block({ text: 'q' }, { cachePoint: { type: 'default' } }),
    ),
    named('messages[].content[].document', {
      ...block(
        { text: 'q' },
        { document: { format: 'pdf', name: 'n', source: { bytes: 'JVBERi0=' } } },
      ),
    }),
    named('messages[].content[].guardContent', block({ guardContent: { text: { text: 'q' } } })),
    named('messages[].content[].video', {
      ...block({ text: 'q' }, { video: { format: 'mp4', source: { bytes: 'AA==' } } }),
    }),
    named('outputConfig.textFormat', {
      outputConfig: {
        textFormat: {
          type: 'json_schema',
          structure: { jsonSchema: { schema: JSON.stringify(schema), name: 'n' } },
        },
      },
    }),
    member('performanceConfig', { latency: 'optimized' }),
    member('promptVariables', { a: { text: 'b' } }),
    member('requestMetadata', { a: 'b' }),
    member('serviceTier', { type: 'flex' }),
    named('stream', { stream: true }),
    member('system', [{ text: 's' }]),
    named(
      'toolConfig.toolChoice',
      { toolConfig: { tools: [spec()], toolChoice: { any: {} } } },
      specified,
    ),
    named('toolConfig.tools', specified),
    named(
      'toolConfig.tools[].toolSpec.strict',
      {
        toolConfig: { tools: [spec({ strict: true })] },
      },
      specified,
    ),
  ],
})

clients.push({
  title: 'TextCompletions',
  format: clientFormats.TextCompletions,
  base: { prompt: 'q' },
  providers: ['messages', 'generate-content', 'converse'],
  members: [
    member('best_of', 2),
    member('echo', true),
    member('frequency_penalty', 0.5),
    member('logit_bias', { 50: 1 }),
    member('logprobs', 2),
    member('max_tokens', 9),
    member('n', 2),
    member('presence_penalty', 0.5),
    named('several prompts', { prompt: ['q', 'r'] }),
    member('seed', 7),
    member('stop', ['x']),
    member('stream', true),
    member('suffix', 'x'),
    member('temperature', 0.5),
    member('top_p', 0.5),
    member('user', 'u'),
  ],
})

/** Of each format of providers: its models in the table, and one of them for which the translation is made. */
const columns = {
  completions: { title: 'vendorA, vendorB, others', id: 'openai', models: ['gpt-5.1'] },
  messages: {
    title: 'vendorC, Claude of vendorE',
    id: 'anthropic',
    models: ['claude-sonnet-4-6', 'claude-opus-4-8'],
  },
  'generate-content': {
    title: 'vendorD, Gemini of vendorE',
    id: 'gcp.gemini',
    models: ['gemini-2.5-flash'],
  },
  converse: {
    title: 'vendorF',
    id: 'aws.bedrock',
    models: ['anthropic.claude-sonnet-4-6', 'anthropic.claude-opus-4-8'],
  },
}

const note = `<!-- Generated by npm run generate: scripts/generators/translations.mjs translates requests with and without each member; do not edit. -->`

const introduction = `# What translations do with the members of a request

If the provider has the client's format, it gets every member unchanged. InvokeModel has the members of Messages, besides \`anthropic_version\` and \`anthropic_beta\`, which become headers for vendorC. Otherwise:

- **yes**: the provider gets the member in its own words.
- **some models**: models that support it get it. The [catalog of models](ai.md#the-catalog-of-models) says which; for others it is left out.
- **refused**: another provider of the backend is tried. If there is none, the request fails with 400, and the message names the member.
- **left out**: the provider has no counterpart, and the response does not depend on it.
`

/** @returns {Record<string, string>} */
export function generate() {
  const tables = clients.map((client) => `## ${client.title}\n\n${tableOf(client)}`)
  return { 'docs/translations.md': `${note}\n${introduction}\n${tables.join('\n\n')}\n` }
}

function tableOf({ format, base, providers, members }) {
  const titles = providers.map((name) => columns[name].title)
  const rows = members.map(({ name, set, with: more }) => {
    const cells = providers.map((provider) => fateOf(format, provider, { ...base, ...more }, set))
    return `| ${[/^…|^\w+ \w+/.test(name) ? name : `\`${name}\``, ...cells].join(' | ')} |`
  })
  return [
    `| member | ${titles.join(' | ')} |`,
    `|---|${titles.map(() => '---|').join('')}`,
    ...rows,
  ].join('\n')
}

function fateOf(format, provider, without, set) {
  const { models } = columns[provider]
  // Only some models have prices for other services.
  const fates = new Set(
    models.flatMap((one) =>
      [[], ['flex']].map((services) =>
        fateAt(format, provider, { ...without, model: one }, set, services),
      ),
    ),
  )
  return fates.size === 1 ? [...fates][0] : 'some models'
}

function fateAt(format, provider, without, set, services) {
  const before = written(format, provider, without, services)
  const after = written(format, provider, { ...without, ...set }, services)
  if (after === undefined) return 'refused'
  if (set.stream === true) return 'yes'
  return after === before ? 'left out' : 'yes'
}

/** The request to the provider as text; undefined if it is refused. */
function written(format, provider, body, services) {
  try {
    const chat = format.readRequest(body)
    const facts = { ...familyCatalog.find(body.model, columns[provider].id), services }
    const options = { newId: () => 'id', facts }
    return JSON.stringify(translate(chat, providerFormats[provider], options).body)
  } catch (error) {
    if (error instanceof LlmError) return undefined
    throw error
  }
}
