/** The providers that a model may name, by the names of their products, and what each stands for. */
import { bareHost } from '../../../../ground/base/bare-host.ts'
import type { ModelProvider, ProviderConfig } from '../../../../ground/model/model-providers.ts'
import type { ResolvedServer } from '../../define.ts'
import { configOfNamed } from '../providers/index.ts'
import { atBase } from '../providers/presets.ts'

export { azureModel } from '../providers/azure/index.ts'
export { customModel } from '../providers/custom/index.ts'
export { vertexModel } from '../providers/vendor-e/index.ts'
export { bedrockModel } from '../providers/vendor-f/index.ts'

interface Product {
  readonly doc: string
  /** Name of the provider in GatewayBackends. */
  readonly name: string
}

const products = {
  OpenAI: { doc: 'OpenAI', name: 'vendorA' },
  Azure: { doc: 'Azure OpenAI or Azure AI Foundry; requires azure', name: 'azure' },
  Anthropic: { doc: 'Anthropic', name: 'vendorC' },
  Gemini: { doc: 'Gemini API', name: 'vendorD' },
  VertexAI: { doc: 'Vertex AI; requires vertexai', name: 'vendorE' },
  Bedrock: { doc: 'Amazon Bedrock', name: 'vendorF' },
  Cohere: { doc: 'Cohere', name: 'cohere' },
  Ollama: { doc: 'Ollama; requires baseURL', name: 'ollama' },
  Baseten: { doc: 'Baseten', name: 'baseten' },
  Cerebras: { doc: 'Cerebras', name: 'cerebras' },
  Deepinfra: { doc: 'DeepInfra', name: 'deepinfra' },
  Deepseek: { doc: 'DeepSeek', name: 'deepseek' },
  Groq: { doc: 'Groq', name: 'groq' },
  Huggingface: { doc: 'Hugging Face Inference Providers', name: 'huggingface' },
  Mistral: { doc: 'Mistral', name: 'mistral' },
  Openrouter: { doc: 'OpenRouter', name: 'openrouter' },
  TogetherAI: { doc: 'Together AI', name: 'togetherai' },
  XAI: { doc: 'xAI', name: 'xai' },
  Fireworks: { doc: 'Fireworks', name: 'fireworks' },
  Custom: { doc: 'any server; requires custom', name: 'custom' },
} as const satisfies Readonly<Record<string, Product>>
type ProductName = keyof typeof products

/** The values of `provider`, with their descriptions. */
export const productNames = Object.fromEntries(
  Object.entries(products).map(([name, { doc }]) => [name, doc]),
) as Readonly<Record<ProductName, string>>

interface ProductSettings {
  readonly provider: ProductName
  readonly azure?: object
  readonly vertexai?: object
  readonly bedrock?: object
  readonly custom?: { readonly backendRef?: object }
  readonly baseURL?: string
}

/** What serves a model in the cluster. */
type ModelServer = ResolvedServer['target']

/** Returns the provider that a model names. `server` is what its backendRef refers to. */
export function productProvider(spec: ProductSettings, server?: ModelServer): ModelProvider {
  const { provider, azure, vertexai, bedrock, custom, baseURL } = spec
  const { backendRef: _, ...own } = custom ?? {}
  const config = configOfNamed(products[provider].name, {
    ...azure,
    ...vertexai,
    ...bedrock,
    ...own,
  })
  if (server !== undefined) return { config, ...placeOf(server) }
  return baseURL === undefined ? { config } : atUrl(config, baseURL)
}

/** Where requests to a server in the cluster go, with the host and the port that they name. */
export const placeOf = (server: ModelServer) => ({ ...addressOf(server), target: server })

/** The host and the port that requests name. */
function addressOf(server: ModelServer): { readonly host: string; readonly port: number } {
  if (server.type === 'invalid') return { host: 'invalid', port: 80 }
  const { name, namespace } = server
  return server.type === 'service'
    ? { host: `${name}.${namespace}.svc`, port: server.port }
    : { host: `${name}.${namespace}.inference`, port: 80 }
}

function atUrl(config: ProviderConfig, baseURL: string): ModelProvider {
  const { protocol, hostname, port, pathname } = new URL(baseURL)
  const isTls = protocol === 'https:'
  const base = pathname.replace(/\/+$/, '')
  return {
    config: base === '' ? config : atBase(config, base),
    host: bareHost(hostname),
    port: port === '' ? (isTls ? 443 : 80) : Number(port),
    isTls,
  }
}
