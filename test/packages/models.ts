import { encodingForModel } from '../../src/engines/core/tokens-models.ts'

const models = [
  ...['gpt-4o', 'openai/GPT-4o-2024-08-06', 'gpt-4', 'gpt-4.1-mini', 'gpt-4.5', 'gpt-5-nano', 'o1'],
  ...['o3-mini', 'o4', 'o100', 'gpt-3.5-turbo', 'gpt-35-turbo', 'gpt-oss-20b', 'chatgpt-4o-latest'],
  ...[
    'text-embedding-3-small',
    'text-embedding-ada-002',
    'davinci-002',
    'babbage-002',
    'codex-mini',
  ],
  ...[
    'claude-opus-4',
    'us.anthropic.claude-3',
    'anthropic.claude',
    'eu.gpt-4',
    'gemini-2.5',
    'gemma3',
  ],
  ...['ft:gpt-4o-mini:org::id', 'ft:gpt-3.5-turbo:org::id', 'llama-3', '', 'gpt-4omni', 'gemma-3'],
]

/** The encodings of models as the gateway chooses them, in JSON. */
export const encodings = JSON.stringify(
  Object.fromEntries(models.map((model) => [model, encodingForModel(model)])),
)
