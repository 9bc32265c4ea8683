/** Names in Sluice of the kinds, fields and values of agentgateway. */

import { entryOf } from '../../../ground/base/json-object.ts'

export const kindNames: Readonly<Record<string, string>> = {
  AgentgatewayBackend: 'GatewayBackend',
  AgentgatewayModel: 'AgentgatewayModel',
  AgentgatewayPolicy: 'GatewayPolicy',
  AgentgatewayParameters: 'GatewayParameters',
}

const vendors: Readonly<Record<string, string>> = {
  openai: 'vendorA',
  azureopenai: 'vendorB',
  anthropic: 'vendorC',
  gemini: 'vendorD',
  vertexai: 'vendorE',
  bedrock: 'vendorF',
}

/** New names, by the end of the path at which they occur. */
type Names = readonly { readonly at: RegExp; readonly names: Readonly<Record<string, string>> }[]

const fields: Names = [
  { at: /\.ai\.provider$|\.providers\.\d+$/, names: vendors },
  {
    at: /\.promptGuard\.(?:request|response)\.\d+$/,
    names: { openAIModeration: 'vendorAModeration' },
  },
]
const values: Names = [
  {
    at: /\.ai\.routes\.[^.]*$|\.custom\.formats\.\d+\.type$/,
    names: { AnthropicTokenCount: 'VendorCTokenCount' },
  },
  {
    at: /\.mcp\.authentication\.provider$|\.jwtAuthentication\.mcp\.provider$/,
    names: { Auth0: 'IdpA', Keycloak: 'IdpB' },
  },
  // Conditional adds prefixes only if there are several targets. In Sluice, Always does the same.
  { at: /\.mcp\.prefixMode$/, names: { Conditional: 'Always' } },
]

const rename = (table: Names, path: string, name: string): string => {
  const names = table.find(({ at }) => at.test(path))?.names ?? {}
  return entryOf(names, name) ?? name
}

/** Returns the name in Sluice of a field. `path` is that of the object, such as `.spec.ai.provider`. */
export const nameInSluice = (path: string, name: string): string => rename(fields, path, name)

/** Returns the value in Sluice of the field at a path. */
export const valueInSluice = (path: string, value: string): string => rename(values, path, value)

const originalNames = Object.entries({ ...vendors, openAIModeration: 'vendorAModeration' })

/** Returns the path with the names of agentgateway. */
export const originalPath = (path: string): string =>
  originalNames.reduce((text, [source, name]) => text.replaceAll(`.${name}`, `.${source}`), path)
