/** Requests in the completions format with many items of one kind. */
import { alternating, type RequestBuilders, times, user } from './items.ts'

const fn = (name: string, parameters: object = {}, more: object = {}) => ({
  type: 'function',
  function: { name, parameters, ...more },
})
const tc = (i: number) => ({
  id: `c!${i}`,
  type: 'function',
  function: { name: 'f', arguments: '{}' },
})
export const manyOfCompletions: RequestBuilders = {
  alternating,
  sameRole: (n) => ({ messages: times(n, () => user) }),
  system: (n) => ({ messages: times(n, () => ({ role: 'system', content: 'x' })) }),
  developerLater: (n) => ({
    messages: times(n, (i) => ({ role: i % 2 ? 'developer' : 'user', content: 'x' })),
  }),
  parts: (n) => ({
    messages: [{ role: 'user', content: times(n, () => ({ type: 'text', text: 'x' })) }],
  }),
  assistantParts: (n) => ({
    messages: [
      user,
      {
        role: 'assistant',
        content: times(n, (i) =>
          i % 2 ? { type: 'text', text: 'x' } : { type: 'refusal', refusal: 'x' },
        ),
      },
    ],
  }),
  images: (n) => ({
    messages: [
      {
        role: 'user',
        content: times(n, () => ({
          type: 'image_url',
          image_url: { url: 'data:image/png;base64,aGk=' },
        })),
      },
    ],
  }),
  files: (n) => ({
    messages: [
      {
        role: 'user',
        content: times(n, () => ({
          type: 'file',
          file: { filename: 'a.txt', file_data: 'data:text/plain;base64,aGk=' },
        })),
      },
    ],
  }),
  filesNamed: (n) => ({
    messages: [
      {
        role: 'user',
        content: times(n, (i) => ({
          type: 'file',
          file: { filename: `a${i}.pdf`, file_data: 'data:application/pdf;base64,aGk=' },
        })),
      },
    ],
  }),
  cachedParts: (n) => ({
    messages: [
      {
        role: 'user',
        content: times(n, () => ({
          type: 'text',
          text: 'x',
          cache_control: { type: 'ephemeral' },
        })),
      },
    ],
  }),
  cachedMessages: (n) => ({
    messages: times(n, (i) => ({
      role: i % 2 ? 'assistant' : 'user',
      content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }],
    })),
  }),
  tools: (n) => ({ messages: [user], tools: times(n, (i) => fn(`f${i}`)) }),
  toolsSame: (n) => ({ messages: [user], tools: times(n, () => fn('f!')) }),
  toolsLong: (n) => ({ messages: [user], tools: times(n, (i) => fn('f'.repeat(80) + i)) }),
  toolsStrict: (n) => ({
    messages: [user],
    tools: times(n, (i) =>
      fn(
        `f${i}`,
        {
          type: 'object',
          properties: { a: { type: 'string' } },
          required: ['a'],
          additionalProperties: false,
        },
        { strict: true },
      ),
    ),
  }),
  customTools: (n) => ({
    messages: [user],
    tools: times(n, (i) => ({ type: 'custom', custom: { name: `f${i}` } })),
  }),
  allowedTools: (n) => ({
    messages: [user],
    tools: times(n, (i) => fn(`f${i}`)),
    tool_choice: {
      type: 'allowed_tools',
      allowed_tools: {
        mode: 'auto',
        tools: times(n, (i) => ({ type: 'function', function: { name: `f${i}` } })),
      },
    },
  }),
  schemaProperties: (n) => ({
    messages: [user],
    tools: [
      fn(
        'f',
        {
          type: 'object',
          properties: Object.fromEntries(times(n, (i) => [`p${i}`, { type: 'string' }])),
          required: times(n, (i) => `p${i}`),
          additionalProperties: false,
        },
        { strict: true },
      ),
    ],
  }),
  schemaEnum: (n) => ({
    messages: [user],
    tools: [
      fn(
        'f',
        { type: 'object', properties: { a: { enum: times(n, (i) => `e${i}`) } } },
        { strict: true },
      ),
    ],
  }),
  schemaRefs: (n) => ({
    messages: [user],
    tools: [
      fn(
        'f',
        {
          type: 'object',
          properties: Object.fromEntries(times(n, (i) => [`p${i}`, { $ref: `#/$defs/d${i}` }])),
          $defs: Object.fromEntries(
            times(n, (i) => [
              `d${i}`,
              { type: 'object', properties: { a: { $ref: `#/$defs/d${i + 1}` } } },
            ]),
          ),
        },
        { strict: true },
      ),
    ],
  }),
  schemaAllOf: (n) => ({
    messages: [user],
    tools: [
      fn('f', {
        allOf: times(n, (i) => ({
          type: 'object',
          properties: { [`p${i}`]: { type: 'string' } },
          required: [`p${i}`],
        })),
      }),
    ],
  }),
  schemaAllOfRefs: (n) => ({
    messages: [user],
    tools: [
      fn('f', {
        allOf: times(n, (_i) => ({ $ref: '#/$defs/d' })),
        $defs: {
          d: { type: 'object', properties: Object.fromEntries(times(n, (i) => [`p${i}`, {}])) },
        },
      }),
    ],
  }),
  schemaAnyOf: (n) => ({
    messages: [user],
    tools: [
      fn('f', {
        type: 'object',
        anyOf: times(n, (i) => ({
          type: 'object',
          properties: { [`p${i}`]: { type: 'string' } },
          required: [`p${i}`],
        })),
      }),
    ],
  }),
  schemaRefSame: (n) => ({
    messages: [user],
    response_format: {
      type: 'json_schema',
      json_schema: {
        name: 'a',
        strict: true,
        schema: {
          type: 'object',
          properties: Object.fromEntries(times(n, (i) => [`p${i}`, { $ref: '#/$defs/d' }])),
          $defs: {
            d: { type: 'object', properties: Object.fromEntries(times(n, (i) => [`q${i}`, {}])) },
          },
        },
      },
    },
  }),
  calls: (n) => ({
    messages: [
      user,
      { role: 'assistant', tool_calls: times(n, tc) },
      ...times(n, (i) => ({ role: 'tool', tool_call_id: `c!${i}`, content: 'r' })),
    ],
  }),
  callsReversed: (n) => ({
    messages: [
      user,
      { role: 'assistant', tool_calls: times(n, tc) },
      ...times(n, (i) => ({ role: 'tool', tool_call_id: `c!${n - i}`, content: 'r' })),
    ],
  }),
  callsSameId: (n) => ({
    messages: [
      user,
      { role: 'assistant', tool_calls: times(n, () => tc(0)) },
      ...times(n, (_i) => ({ role: 'tool', tool_call_id: 'c!0', content: 'r' })),
    ],
  }),
  callTurns: (n) => ({
    messages: [
      user,
      ...times(n, (i) => [
        { role: 'assistant', content: null, tool_calls: [tc(i)] },
        { role: 'tool', tool_call_id: `c!${i}`, content: 'r' },
      ]).flat(),
    ],
  }),
  callNames: (n) => ({
    messages: [
      user,
      {
        role: 'assistant',
        tool_calls: times(n, (i) => ({
          id: `c${i}`,
          type: 'function',
          function: { name: `g!${i}`, arguments: '{}' },
        })),
      },
      ...times(n, (i) => ({ role: 'tool', tool_call_id: `c${i}`, content: 'r' })),
    ],
  }),
  resultParts: (n) => ({
    messages: [
      user,
      { role: 'assistant', tool_calls: [tc(0)] },
      { role: 'tool', tool_call_id: 'c!0', content: times(n, () => ({ type: 'text', text: 'x' })) },
    ],
  }),
  results: (n) => ({
    messages: [user, ...times(n, (i) => ({ role: 'tool', tool_call_id: `c${i}`, content: 'r' }))],
  }),
  functionMessages: (n) => ({
    messages: [
      user,
      ...times(n, (_i) => [
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: 'r' },
      ]).flat(),
    ],
  }),
  thinking: (n) => ({
    messages: [
      user,
      ...times(n, (_i) => ({
        role: 'assistant',
        content: 'x',
        reasoning_content: 't',
        thinking_blocks: [{ type: 'thinking', thinking: 't', signature: 's' }],
      })),
    ],
  }),
  thinkingBlocks: (n) => ({
    messages: [
      user,
      {
        role: 'assistant',
        content: 'x',
        thinking_blocks: times(n, () => ({ type: 'thinking', thinking: 't', signature: 's' })),
      },
    ],
  }),
  stop: (n) => ({ messages: [user], stop: times(n, (i) => `s${i}`) }),
  labels: (n) => ({
    messages: [user],
    labels: Object.fromEntries(times(n, (i) => [`l${i}`, 'x'])),
  }),
  unknown: (n) => ({ messages: [user], ...Object.fromEntries(times(n, (i) => [`l${i}`, 1])) }),
  domains: (n) => ({
    messages: [user],
    web_search_options: { filters: { allowed_domains: times(n, (i) => `d${i}`) } },
  }),
  argumentsDeep: (n) => ({
    messages: [
      user,
      {
        role: 'assistant',
        tool_calls: [
          {
            id: 'c',
            type: 'function',
            function: { name: 'f', arguments: JSON.stringify(times(n, () => ({}))) },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'c', content: 'r' },
    ],
  }),
}
