/** Vendors that `sluice ai` can serve, and how their models are recognized by name. */
import { shippedCatalog } from '../../../engines/messages/catalog/shipped.ts'

export interface AiVendor {
  /** Part of the name of its option: `--openai-key-env`. */
  readonly name: string
  /** Its name in AgentgatewayModels. */
  readonly provider: string
  /** Environment variables in which the vendor's own SDK looks for the key. */
  readonly variables: readonly string[]
  /** Its name in the catalog, which has its models; omitted if it has models of other vendors. */
  readonly catalogId?: string
}

export const vendors: readonly AiVendor[] = [
  {
    name: 'openai',
    provider: 'OpenAI',
    variables: ['OPENAI_API_KEY'],
    catalogId: 'openai',
  },
  {
    name: 'anthropic',
    provider: 'Anthropic',
    variables: ['ANTHROPIC_API_KEY'],
    catalogId: 'anthropic',
  },
  {
    name: 'gemini',
    provider: 'Gemini',
    variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    catalogId: 'gcp.gemini',
  },
  {
    name: 'mistral',
    provider: 'Mistral',
    variables: ['MISTRAL_API_KEY'],
    catalogId: 'mistral_ai',
  },
  {
    name: 'deepseek',
    provider: 'Deepseek',
    variables: ['DEEPSEEK_API_KEY'],
    catalogId: 'deepseek',
  },
  { name: 'xai', provider: 'XAI', variables: ['XAI_API_KEY'], catalogId: 'x_ai' },
  {
    name: 'cohere',
    provider: 'Cohere',
    variables: ['COHERE_API_KEY', 'CO_API_KEY'],
    catalogId: 'cohere',
  },
  { name: 'openrouter', provider: 'Openrouter', variables: ['OPENROUTER_API_KEY'] },
  { name: 'groq', provider: 'Groq', variables: ['GROQ_API_KEY'] },
  { name: 'togetherai', provider: 'TogetherAI', variables: ['TOGETHER_API_KEY'] },
  { name: 'fireworks', provider: 'Fireworks', variables: ['FIREWORKS_API_KEY'] },
  { name: 'cerebras', provider: 'Cerebras', variables: ['CEREBRAS_API_KEY'] },
  { name: 'huggingface', provider: 'Huggingface', variables: ['HF_TOKEN'] },
]

/** A server on this machine, which needs no key. */
export const ollama: AiVendor = { name: 'ollama', provider: 'Ollama', variables: [] }

/** Whether a vendor gets every model that no other vendor has. */
export const servesAny = ({ catalogId }: AiVendor): boolean => catalogId === undefined

/**
 * Returns patterns of the names of a vendor's models: the words with which its names in the catalog begin, so that
 * newer models match as well. If more names of another vendor begin with the same words, more words are needed.
 */
export function modelPatterns({ catalogId }: AiVendor): readonly string[] {
  if (catalogId === undefined) return ['*']
  const names = shippedCatalog.namesOf(catalogId)
  const others = vendors.flatMap(({ catalogId: other }) =>
    other === undefined || other === catalogId ? [] : [shippedCatalog.namesOf(other)],
  )
  const patterns = names.map((name) => {
    const words = name.split('-')
    const beginnings = words.map((_, at) => words.slice(0, at + 1).join('-'))
    const own = beginnings.find((one) => {
      const count = (all: readonly string[]) => all.filter((other) => other.startsWith(one)).length
      return others.every((other) => count(other) < count(names))
    })
    return own === undefined ? name : `${own}*`
  })
  return [...new Set(patterns)]
}
