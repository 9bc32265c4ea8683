/** Requests in the responses format with many items of one kind. */
import { type RequestBuilders, times } from './items.ts'

const fc = (i: number) => ({ type: 'function_call', call_id: `c!${i}`, name: 'f', arguments: '{}' })
const fo = (i: number | string, output: unknown = 'r') => ({
  type: 'function_call_output',
  call_id: `c!${i}`,
  output,
})
export const manyOfResponses: RequestBuilders = {
  messages: (n) => ({
    input: times(n, (i) => ({
      type: 'message',
      role: i % 2 ? 'assistant' : 'user',
      content: [{ type: i % 2 ? 'output_text' : 'input_text', text: 'x' }],
    })),
  }),
  sameRole: (n) => ({ input: times(n, () => ({ role: 'assistant', content: 'x' })) }),
  developer: (n) => ({
    input: times(n, (i) => ({ role: i % 2 ? 'developer' : 'user', content: 'x' })),
  }),
  calls: (n) => ({ input: [...times(n, fc), ...times(n, (i) => fo(i))] }),
  callsReversed: (n) => ({ input: [...times(n, fc), ...times(n, (i) => fo(n - 1 - i))] }),
  callTurns: (n) => ({ input: times(n, (i) => [fc(i), fo(i)]).flat() }),
  customCalls: (n) => ({
    input: times(n, (i) => [
      { type: 'custom_tool_call', call_id: `c${i}`, name: 'f', input: 'x' },
      { type: 'custom_tool_call_output', call_id: `c${i}`, output: 'r' },
    ]).flat(),
    tools: [{ type: 'custom', name: 'f' }],
  }),
  outputs: (n) => ({ input: times(n, (i) => fo(i)) }),
  outputParts: (n) => ({
    input: [
      fc(0),
      fo(
        0,
        times(n, () => ({ type: 'input_text', text: 'x' })),
      ),
    ],
  }),
  outputFiles: (n) => ({
    input: [
      fc(0),
      fo(
        0,
        times(n, (_i) => ({
          type: 'input_file',
          filename: 'a.pdf',
          file_data: 'data:application/pdf;base64,aGk=',
        })),
      ),
    ],
  }),
  reasoning: (n) => ({
    input: times(n, (i) =>
      i % 2 ? { type: 'reasoning', summary: [{ type: 'summary_text', text: 's' }] } : fc(i),
    ),
  }),
  summary: (n) => ({
    input: [
      { type: 'reasoning', summary: times(n, () => ({ type: 'summary_text', text: 's' })) },
      fc(0),
      fo(0),
    ],
  }),
  parts: (n) => ({
    input: [{ role: 'user', content: times(n, () => ({ type: 'input_text', text: 'x' })) }],
  }),
  images: (n) => ({
    input: [
      {
        role: 'user',
        content: times(n, () => ({ type: 'input_image', image_url: 'data:image/png;base64,aGk=' })),
      },
    ],
  }),
  namespaces: (n) => ({
    input: 'x',
    tools: times(n, (i) => ({
      type: 'namespace',
      name: `n${i}`,
      description: 'd',
      tools: [{ type: 'function', name: 'f', parameters: {} }],
    })),
  }),
  namespaceSame: (n) => ({
    input: 'x',
    tools: times(n, (i) => ({
      type: 'namespace',
      name: 'n',
      description: 'd',
      tools: [{ type: 'function', name: `f${i}`, parameters: {} }],
    })),
  }),
  namespaceTools: (n) => ({
    input: 'x',
    tools: [
      {
        type: 'namespace',
        name: 'n',
        description: 'd',
        tools: times(n, (i) => ({ type: 'function', name: `f${i}`, parameters: {} })),
      },
    ],
  }),
  namespaceEmpty: (n) => ({
    input: 'x',
    tools: [
      ...times(n, (i) => ({ type: 'function', name: `f${i}`, parameters: {} })),
      ...times(n, (i) => ({ type: 'namespace', name: `n${i}`, description: 'd', tools: [] })),
    ],
  }),
  namespaceCollisions: (n) => ({
    input: 'x',
    tools: times(n, (i) => [
      {
        type: 'namespace',
        name: 'n',
        tools: [{ type: 'function', name: `f${i}`, parameters: {} }],
      },
      { type: 'function', name: `n__f${i}`, parameters: {} },
    ]).flat(),
  }),
  additional: (n) => ({
    input: times(n, (i) => ({
      type: 'additional_tools',
      tools: [{ type: 'function', name: `f${i}`, parameters: {} }],
    })),
  }),
  allowed: (n) => ({
    input: 'x',
    tools: times(n, (i) => ({ type: 'function', name: `f${i}`, parameters: {} })),
    tool_choice: {
      type: 'allowed_tools',
      mode: 'auto',
      tools: times(n, (i) => ({ type: 'function', name: `f${i}` })),
    },
  }),
  searches: (n) => ({
    input: times(n, (i) =>
      i % 2 ? { type: 'web_search_call', id: 'w', action: {} } : { role: 'user', content: 'x' },
    ),
  }),
}
