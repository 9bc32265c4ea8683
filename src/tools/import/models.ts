/** Builds providers of AI backends from what other gateways call models, targets and deployments. */

import { entryOf } from '../../ground/base/json-object.ts'
import { type Conversion, compact, type Fields, filled } from './conversion.ts'
import type { SourceField } from './field.ts'
import { type Address, addCredential, parseAddress } from './targets.ts'

type Vendor = 'vendorA' | 'vendorB' | 'vendorC' | 'vendorD' | 'vendorE' | 'vendorF'

/** Names of the vendors in the configurations of other gateways. */
const vendorNames: Readonly<Record<string, Vendor>> = {
  openai: 'vendorA',
  text_completion_openai: 'vendorA',
  azure: 'vendorB',
  azureopenai: 'vendorB',
  'azure-openai': 'vendorB',
  anthropic: 'vendorC',
  gemini: 'vendorD',
  google: 'vendorD',
  vertex_ai: 'vendorE',
  'vertex-ai': 'vendorE',
  bedrock: 'vendorF',
}

/** Services that speak the format of vendorA, with the base address of their interface. */
const compatible: Readonly<Record<string, string>> = {
  cerebras: 'https://api.cerebras.ai/v1',
  deepinfra: 'https://api.deepinfra.com/v1/openai',
  deepseek: 'https://api.deepseek.com/v1',
  fireworks_ai: 'https://api.fireworks.ai/inference/v1',
  'fireworks-ai': 'https://api.fireworks.ai/inference/v1',
  groq: 'https://api.groq.com/openai/v1',
  mistral: 'https://api.mistral.ai/v1',
  'mistral-ai': 'https://api.mistral.ai/v1',
  nvidia_nim: 'https://integrate.api.nvidia.com/v1',
  openrouter: 'https://openrouter.ai/api/v1',
  perplexity: 'https://api.perplexity.ai',
  'perplexity-ai': 'https://api.perplexity.ai',
  together_ai: 'https://api.together.xyz/v1',
  'together-ai': 'https://api.together.xyz/v1',
  xai: 'https://api.x.ai/v1',
  'x-ai': 'https://api.x.ai/v1',
}

/** Servers that speak the format of vendorA at an address that the user names. */
const addressed = [
  'custom_openai',
  'hosted_vllm',
  'llama2',
  'lm_studio',
  'ollama',
  'ollama_chat',
  'openai_like',
  'vllm',
]

/** A model at a provider, as a source describes it. */
interface ModelTarget {
  /** Name of the provider in the source. */
  readonly provider: string
  readonly model?: string | undefined
  /** Base address that replaces the provider's own. */
  readonly base?: string | undefined
  /** For vendorB. */
  readonly apiVersion?: string | undefined
  /** For vendorE. */
  readonly project?: string | undefined
  /** For vendorE and vendorF. */
  readonly region?: string | undefined
  readonly auth?: Fields | undefined
}

/** Whether `providerOf` can convert the provider. */
export const isKnownProvider = (name: string): boolean =>
  entryOf(vendorNames, name) !== undefined ||
  entryOf(compatible, name) !== undefined ||
  addressed.includes(name)

/**
 * Fields of a provider: a vendor with its settings, the address, and the policies. Reports the target and
 * returns undefined if it cannot be converted.
 */
export function providerOf(target: ModelTarget, origin: SourceField): Fields | undefined {
  const { provider, model } = target
  const vendor =
    entryOf(vendorNames, provider) ?? (isKnownProvider(provider) ? 'vendorA' : undefined)
  const text = target.base ?? entryOf(compatible, provider)
  const base = text === undefined ? undefined : parseAddress(text)
  const problem = problemOf(target, vendor, text, base)
  if (vendor === undefined || problem !== undefined) {
    return origin.report('lost', problem ?? `the provider ${provider} is not supported`)
  }
  const settings: Readonly<Record<Vendor, Fields>> = {
    vendorA: { model },
    vendorB: { endpoint: base?.host, deploymentName: model, apiVersion: target.apiVersion },
    vendorC: { model },
    vendorD: { model },
    vendorE: { model, projectId: target.project, region: target.region },
    vendorF: { model, region: target.region },
  }
  const own = vendor === 'vendorB' ? undefined : base
  // Without `tls`, an own host is reached in plaintext unless its port is 443.
  const tls = own?.isTls === true && own.port !== 443 ? {} : undefined
  const port = vendor === 'vendorB' && base?.port === 443 ? undefined : base?.port
  const policies = compact({ tls, auth: target.auth })
  return compact({
    [vendor]: settings[vendor],
    host: vendor === 'vendorB' && port !== undefined ? base?.host : own?.host,
    port,
    path: pathOf(vendor, own, origin),
    policies: filled(policies),
  })
}

function problemOf(
  { provider, project, region }: ModelTarget,
  vendor: Vendor | undefined,
  text: string | undefined,
  base: Address | undefined,
): string | undefined {
  if (text !== undefined && base === undefined) return 'its address is not an http or https URL'
  if (vendor === 'vendorB' && base === undefined) return `the provider ${provider} needs an address`
  if (addressed.includes(provider) && base === undefined)
    return `the provider ${provider} needs an address`
  if (vendor === 'vendorE' && (project === undefined || region === undefined)) {
    return `the provider ${provider} needs a project and a location`
  }
  return undefined
}

/** The path of chat completions, if the address has another base than `/v1`. */
function pathOf(
  vendor: Vendor,
  base: Address | undefined,
  origin: SourceField,
): string | undefined {
  if (vendor !== 'vendorA' || base === undefined || base.path === '/v1' || base.path === '')
    return undefined
  const path = base.path.endsWith('/chat/completions') ? base.path : `${base.path}/chat/completions`
  origin.report('changed', `all requests go to ${path}: the provider serves chat completions only`)
  return path
}

/** A place where sources write a key: inline, or as the name of an environment variable. */
export interface KeySource {
  readonly value?: string | undefined
  readonly variable?: string | undefined
}

/** Backend authentication with a key that the provider gets in its Authorization header. */
export function keyAuth(
  result: Conversion,
  name: string,
  key: KeySource,
  origin: SourceField,
): Fields | undefined {
  if (key.value === undefined && key.variable === undefined) return undefined
  const credential = compact({ key: 'Authorization', ...key })
  return { secretRef: addCredential(result, `${name}-key`, credential as never, origin) }
}

interface NamedProvider {
  readonly name: string
  readonly provider: Fields
}

/** The field `ai` of a backend. Each provider of its groups gets a name that is unique in it. */
export function modelGroups<Model>(
  groups: readonly (readonly Model[])[],
  read: (model: Model) => NamedProvider,
): { readonly groups: readonly Fields[] } {
  const used = new Set<string>()
  const named = (model: Model): Fields => {
    const { name: label, provider } = read(model)
    const plain = label
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-+|-+$/g, '')
    const base = plain === '' ? 'provider' : plain.slice(0, 50).replace(/-+$/, '')
    let name = base
    for (let count = 2; used.has(name); count++) name = `${base}-${count}`
    used.add(name)
    return { name, ...provider }
  }
  return { groups: groups.map((models) => ({ providers: models.map(named) })) }
}
