/** The manifests that `sluice ai` runs. They contain names of variables and the hash of a key, but no credential. */
import { gatewayGroup } from '../../../ground/model/api-names.ts'
import { credential, gatewayOn, keyObjects, ownApi, policyOn } from '../local/gateway.ts'
import type { Budget } from './budget.ts'
import { type AiVendor, modelPatterns } from './vendors.ts'

/** A vendor to serve. */
export interface ServedVendor {
  readonly vendor: AiVendor
  /** The environment variable that has its key; undefined if it needs none. */
  readonly variable: string | undefined
  /** In place of the vendor's own address. */
  readonly baseUrl: string | undefined
}

interface AiSettings {
  readonly port: number
  /** SHA-256 of the only key of clients; undefined if clients need no key. */
  readonly keyHash: string | undefined
  readonly hasMasks: boolean
  /** What may be spent; undefined if there is no limit. */
  readonly budget: Budget | undefined
}

const name = 'ai'
const personal = ['Email', 'PhoneNumber', 'CreditCard', 'Ssn']

export function manifestsOf(served: readonly ServedVendor[], settings: AiSettings): object[] {
  const { port, keyHash, hasMasks, budget } = settings
  const objects = [gatewayOn(name, port), ...served.flatMap((vendor) => modelsOf(vendor, name))]
  if (keyHash !== undefined) objects.push(...keyObjects(name, keyHash))
  if (hasMasks) objects.push(masksOn(name))
  if (budget !== undefined) objects.push(budgetObject(budget))
  return objects
}

/** A budget for all requests together, since there is only one key. */
const budgetObject = ({ unit, amount, window }: Budget): object => ({
  apiVersion: ownApi,
  kind: 'GatewayBudget',
  metadata: { name: 'ai-budget' },
  spec: {
    targetRefs: [{ group: gatewayGroup, kind: 'Gateway', name }],
    limit: { unit, amount },
    window: { unit: window },
  },
})

/** Masks personal data in prompts and answers of all models of a Gateway. */
export function masksOn(gateway: string): object {
  const masks = [{ regex: { builtins: personal, action: 'Mask' } }]
  const promptGuard = { request: masks, response: masks }
  return policyOn(gateway, `${gateway}-masks`, { backend: { ai: { promptGuard } } })
}

/** The Secret of a vendor, and one object for each pattern of its models, for a Gateway. */
export function modelsOf({ vendor, variable, baseUrl }: ServedVendor, gateway: string): object[] {
  const secret = `${vendor.name}-key`
  const auth = variable === undefined ? undefined : { secretRef: { name: secret } }
  const models = modelPatterns(vendor).map((model) => ({
    apiVersion: ownApi,
    kind: 'AgentgatewayModel',
    metadata: { name: objectName(vendor.name, model) },
    spec: {
      parentRefs: [{ name: gateway }],
      match: { model },
      provider: vendor.provider,
      ...(baseUrl !== undefined && { baseURL: baseUrl }),
      ...(auth !== undefined && { policies: { auth } }),
    },
  }))
  if (variable === undefined) return models
  return [credential(secret, `\${env:${variable}}`), ...models]
}

/** `openai-gpt` for the models `gpt*`. */
const objectName = (vendor: string, pattern: string): string =>
  `${vendor}-${pattern.replace(/\*$/, '').replaceAll(/[^a-z0-9.-]/g, '-') || 'all'}`
