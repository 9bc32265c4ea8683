/**
 * Services and servers that speak formats of vendors A and C. Each name stands for settings of `custom`, which the
 * control plane puts in its place, so that proxies know no presets. To add one, add a line to `presets`.
 */
import type { ProviderConfig } from '../../../../ground/model/model-providers.ts'
import { object, optional } from '../../../../ground/schema/field.ts'
import { formatPath } from './format-paths.ts'
import { defineSpelling, model } from './vendor.ts'

interface Preset {
  readonly product: string
  /** Name in telemetry; that of OpenTelemetry's conventions if they have one. */
  readonly systemName: string
  /** Host of the service; omitted for servers that users run, whose host must be set. */
  readonly host?: string
  /** Paths by the types of requests. */
  readonly paths: Readonly<Record<string, string>>
}

const at =
  (...types: readonly string[]) =>
  (base: string): Preset['paths'] =>
    Object.fromEntries(types.map((type) => [type, formatPath(type, base) ?? base]))

const chat = at('Completions')
const responses = at('Responses')
const messages = at('Messages')
const embeddings = at('Embeddings')
const completions = at('TextCompletions')
const rerank = at('Rerank')
const transcriptions = at('Transcriptions')
const audio = at('Transcriptions', 'Translations')
const all = at('Completions', 'Responses', 'Messages', 'Embeddings')

const preset = (
  product: string,
  systemName: string,
  host: string | undefined,
  ...paths: readonly Preset['paths'][]
): Preset => ({ product, systemName, ...(host && { host }), paths: Object.assign({}, ...paths) })

const presets = {
  ollama: preset('Ollama', 'ollama', undefined, all('/v1'), completions('/v1')),
  vllm: preset(
    'vLLM',
    'vllm',
    undefined,
    all('/v1'),
    completions('/v1'),
    rerank('/v1'),
    audio('/v1'),
  ),
  llamacpp: preset(
    'llama.cpp (llama-server)',
    'llamacpp',
    undefined,
    all('/v1'),
    completions('/v1'),
    rerank('/v1'),
  ),
  lmstudio: preset('LM Studio', 'lmstudio', undefined, all('/v1'), completions('/v1')),
  groq: preset(
    'Groq',
    'groq',
    'api.groq.com',
    chat('/openai/v1'),
    responses('/openai/v1'),
    audio('/openai/v1'),
  ),
  mistral: preset(
    'Mistral',
    'mistral_ai',
    'api.mistral.ai',
    chat('/v1'),
    embeddings('/v1'),
    transcriptions('/v1'),
  ),
  deepseek: preset(
    'DeepSeek',
    'deepseek',
    'api.deepseek.com',
    chat('/v1'),
    messages('/anthropic/v1'),
  ),
  xai: preset('xAI', 'x_ai', 'api.x.ai', chat('/v1'), responses('/v1')),
  openrouter: preset('OpenRouter', 'openrouter', 'openrouter.ai', all('/api/v1')),
  togetherai: preset(
    'Together AI',
    'together_ai',
    'api.together.xyz',
    chat('/v1'),
    embeddings('/v1'),
    completions('/v1'),
    rerank('/v1'),
    audio('/v1'),
  ),
  fireworks: preset(
    'Fireworks',
    'fireworks',
    'api.fireworks.ai',
    all('/inference/v1'),
    completions('/inference/v1'),
    rerank('/inference/v1'),
  ),
  baseten: preset('Baseten', 'baseten', 'inference.baseten.co', chat('/v1')),
  deepinfra: preset(
    'DeepInfra',
    'deepinfra',
    'api.deepinfra.com',
    chat('/v1/openai'),
    embeddings('/v1/openai'),
    audio('/v1/openai'),
  ),
  cerebras: preset('Cerebras', 'cerebras', 'api.cerebras.ai', chat('/v1')),
  cohere: preset(
    'Cohere',
    'cohere',
    'api.cohere.ai',
    chat('/compatibility/v1'),
    embeddings('/compatibility/v1'),
    rerank('/v2'),
  ),
  huggingface: preset(
    'Hugging Face Inference Providers',
    'huggingface',
    'router.huggingface.co',
    chat('/v1'),
    responses('/v1'),
  ),
} as const satisfies Readonly<Record<string, Preset>>

const config = object('PresetConfig', { model })

/** Settings that a name stands for. */
const spelling = ({ product, systemName, host, paths }: Preset) =>
  defineSpelling({
    config: optional(config, `${product}.${host === undefined ? ' Requires host.' : ''}`),
    needsHost: host === undefined,
    toConfig: (set): ProviderConfig => ({
      ...set,
      vendor: 'custom',
      systemName,
      formats: Object.entries(paths).map(([type, path]) => ({ type, path })),
      ...(host !== undefined && { endpoint: host }),
    }),
  })

type Spellings = { readonly [Name in keyof typeof presets]: ReturnType<typeof spelling> }

export const presetSpellings = Object.fromEntries(
  Object.entries(presets).map(([name, preset]) => [name, spelling(preset)]),
) as unknown as Spellings

/** Returns settings with another beginning of all paths that users have not set themselves. */
export function atBase(config: ProviderConfig, base: string): ProviderConfig {
  const { formats, systemName } = config
  if (formats === undefined) return { ...config, pathPrefix: base }
  const isPreset = systemName !== undefined
  return {
    ...config,
    formats: formats.map(({ type, path }) => {
      const below = isPreset || path === undefined ? formatPath(type, base) : path
      return { type, ...(below !== undefined && { path: below }) }
    }),
  }
}
