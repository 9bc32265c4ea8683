/** Vendors that `sluice ai` can serve, and how their models are recognized by name. */

export interface AiVendor {
  /** Part of the name of its option: `--openai-key-env`. */
  readonly name: string
  /** Its name in AgentgatewayModels. */
  readonly provider: string
  /** Environment variables in which the vendor's own SDK looks for the key. */
  readonly variables: readonly string[]
  /** Names of its models, each with at most one `*` at its start or end. Only one vendor can have `*`. */
  readonly models: readonly string[]
}

export const vendors: readonly AiVendor[] = [
  {
    name: 'openai',
    provider: 'OpenAI',
    variables: ['OPENAI_API_KEY'],
    models: [
      ...['gpt-*', 'chatgpt-*', 'codex-*', 'o1*', 'o3*', 'o4*', 'text-embedding-*'],
      ...['whisper-*', 'tts-*', 'dall-e-*', 'omni-moderation-*'],
    ],
  },
  {
    name: 'anthropic',
    provider: 'Anthropic',
    variables: ['ANTHROPIC_API_KEY'],
    models: ['claude-*'],
  },
  {
    name: 'gemini',
    provider: 'Gemini',
    variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    models: ['gemini-*', 'gemma-*'],
  },
  {
    name: 'mistral',
    provider: 'Mistral',
    variables: ['MISTRAL_API_KEY'],
    models: [
      ...['mistral-*', 'ministral-*', 'magistral-*', 'codestral-*', 'devstral-*'],
      ...['pixtral-*', 'voxtral-*'],
    ],
  },
  {
    name: 'deepseek',
    provider: 'Deepseek',
    variables: ['DEEPSEEK_API_KEY'],
    models: ['deepseek-*'],
  },
  { name: 'xai', provider: 'XAI', variables: ['XAI_API_KEY'], models: ['grok-*'] },
  {
    name: 'cohere',
    provider: 'Cohere',
    variables: ['COHERE_API_KEY', 'CO_API_KEY'],
    models: ['command-*', 'embed-*', 'rerank-*'],
  },
  { name: 'openrouter', provider: 'Openrouter', variables: ['OPENROUTER_API_KEY'], models: ['*'] },
  { name: 'groq', provider: 'Groq', variables: ['GROQ_API_KEY'], models: ['*'] },
  { name: 'togetherai', provider: 'TogetherAI', variables: ['TOGETHER_API_KEY'], models: ['*'] },
  { name: 'fireworks', provider: 'Fireworks', variables: ['FIREWORKS_API_KEY'], models: ['*'] },
  { name: 'cerebras', provider: 'Cerebras', variables: ['CEREBRAS_API_KEY'], models: ['*'] },
  { name: 'huggingface', provider: 'Huggingface', variables: ['HF_TOKEN'], models: ['*'] },
]

/** A server on this machine, which needs no key. */
export const ollama: AiVendor = { name: 'ollama', provider: 'Ollama', variables: [], models: ['*'] }
