/** Converts MCPRoute to an HTTPRoute, and to a GatewayBackend whose targets are its servers. */
import { entryOf } from '../../../ground/base/json-object.ts'
import { gatewayGroup } from '../../../ground/model/api-names.ts'
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { addBackend, addCredential, addRoute, addStatic, parseAddress, quote } from '../targets.ts'
import type { Backends } from './backends.ts'
import { apiKeysOf, claimConditions, extAuthOf, jwksOf, orderedRules } from './security.ts'
import { enter, nameIn } from './targets.ts'

export function convertMcpRoute(field: SourceField, backends: Backends, result: Conversion): void {
  const name = enter(field, result)
  const spec = field.get('spec')
  const parentRefs = spec.items('parentRefs').map((ref) => ref.object())
  const refs = spec.items('backendRefs')
  const path = { type: 'PathPrefix', value: spec.text('path') ?? '/mcp' }
  const headers = filled(spec.items('headers').map((header) => header.object()))
  const targets = refs.flatMap((ref) => targetOf(ref, name, backends, result))
  const security = spec.get('securityPolicy')
  const selectors = refs.flatMap((ref) => selectorRules(ref))
  const authorization = authorizationOf(security.get('authorization'), selectors)
  const ref = addBackend(
    result,
    name,
    {
      mcp: { targets, failureMode: 'FailOpen' },
      policies: authorization && { mcp: { authorization } },
    },
    field,
  )
  spec
    .get('backendRefs')
    .report('changed', 'tools are named target_tool if there are several targets, else tool')
  addRoute(
    result,
    name,
    { parentRefs, rules: [{ matches: [compact({ path, headers })], backendRefs: [ref] }] },
    field,
  )
  const traffic = {
    jwtAuthentication: tokensOf(security.get('oauth'), result),
    apiKeyAuthentication: apiKeysOf(security.get('apiKeyAuth'), name, result),
    extAuth: extAuthOf(security.get('extAuth'), backends),
  }
  result.policy(name, [{ group: gatewayGroup, kind: 'HTTPRoute', name }], { traffic }, field)
}

function targetOf(
  ref: SourceField,
  route: string,
  backends: Backends,
  result: Conversion,
): Fields[] {
  const name = ref.text('name') ?? ''
  ref.ignore('group', 'kind', 'namespace', 'port')
  const [first, ...others] = backends.serversOf(ref.value as Fields)
  if (first === undefined) {
    ref.report('lost', `the Backend ${name} has no usable endpoint`)
    return []
  }
  ref.get('forwardHeaders').lose('several targets get no headers of clients; use auth.passthrough')
  const auth = authOf(ref.get('securityPolicy'), `${route}-${name}`, result)
  const policies = compact({ ...first.policies, auth })
  const { host, port } = first
  const endpoints = filled(others.map((server) => ({ host: server.host, port: server.port })))
  const selector = ref.get('toolSelector')
  const tools = compact({
    include: filled(selector.texts('include')),
    exclude: filled(selector.texts('exclude')),
  })
  return [
    compact({
      name,
      static: compact({
        host,
        port,
        path: ref.text('path') ?? '/mcp',
        endpoints,
        policies: Object.keys(policies).length > 0 ? policies : undefined,
      }),
      tools: Object.keys(tools).length > 0 ? tools : undefined,
    }),
  ]
}

/** Patterns of tools that are regular expressions become rules, because those of targets are not. */
function selectorRules(ref: SourceField): string[] {
  const selector = ref.get('toolSelector')
  const include = selector.texts('includeRegex')
  const exclude = selector.texts('excludeRegex')
  const matches = (patterns: readonly string[]) =>
    patterns.map((pattern) => `mcp.tool.name.matches(${quote(pattern)})`).join(' || ')
  const parts = [
    ...(include.length > 0 ? [`(${matches(include)})`] : []),
    ...(exclude.length > 0 ? [`!(${matches(exclude)})`] : []),
  ]
  if (parts.length === 0) return []
  return [`!(${isTarget(ref.text('name') ?? '')}) || (${parts.join(' && ')})`]
}

/** True for the tools of a target; false for prompts and resources. */
const isTarget = (target: string) => `default(mcp.tool.target, "") == ${quote(target)}`

/** How the gateway authenticates at a server. */
function authOf(security: SourceField, label: string, result: Conversion): Fields | undefined {
  const key = security.get('apiKey')
  if (key.isSet) return keyOf(key, label, result)
  const exchange = security.get('tokenExchange')
  if (!exchange.isSet) return undefined
  exchange.get('cache').lose('tokens are kept as long as they are valid', 'changed')
  exchange.get('actorToken').lose('set actorToken of oauthTokenExchange', 'protection')
  const client = exchange.get('clientAuth')
  return {
    oauthTokenExchange: compact({
      url: exchange.text('stsEndpoint'),
      subjectToken: exchange.has('subjectTokenType')
        ? { tokenType: exchange.text('subjectTokenType') }
        : undefined,
      audiences: exchange.list('audience'),
      resources: exchange.list('resource'),
      scopes: filled(exchange.texts('scopes')),
      requestedTokenType: requestedOf(exchange.get('requestedTokenType')),
      clientAuth: client.isSet
        ? {
            clientId: client.text('clientID'),
            secretRef: { name: nameIn(client.get('clientSecretRef')), key: 'clientSecret' },
          }
        : undefined,
    }),
  }
}

const requestedTypes: Readonly<Record<string, string>> = {
  'urn:ietf:params:oauth:token-type:access_token': 'AccessToken',
  'urn:ietf:params:oauth:token-type:jwt': 'Jwt',
  'urn:ietf:params:oauth:token-type:id_token': 'IdToken',
}

function requestedOf(field: SourceField): string | undefined {
  const type = field.text()
  if (type === undefined) return undefined
  return entryOf(requestedTypes, type) ?? field.report('lost', `the type ${type} is not supported`)
}

/** The key is sent as a bearer token, or as it is in another header or a parameter. */
function keyOf(key: SourceField, label: string, result: Conversion): Fields {
  const header = key.text('header')
  const parameter = key.text('queryParam')
  const location =
    parameter !== undefined
      ? { queryParameter: { name: parameter } }
      : header !== undefined && header.toLowerCase() !== 'authorization'
        ? { header: { name: header } }
        : undefined
  const inline = key.text('inline')
  const secretRef =
    inline === undefined
      ? { name: nameIn(key.get('secretRef')), key: 'apiKey' }
      : addCredential(result, `${label}-key`, { key: 'Authorization', value: inline }, key)
  return compact({ secretRef, location })
}

/** Tokens that clients of MCP get at an authorization server, which the metadata of the route names. */
function tokensOf(oauth: SourceField, result: Conversion): Fields | undefined {
  if (!oauth.isSet) return undefined
  const issuer = oauth.text('issuer') ?? ''
  oauth.get('claimToHeaders').lose('set the headers with a transformation on the route')
  const resource = oauth.get('protectedResourceMetadata')
  const keys = oauth.get('jwks')
  const jwks = keys.isSet ? jwksOf(keys, result) : keysOfIssuer(issuer, oauth, result)
  const audiences = oauth.list('audiences')
  const resourceMetadata = compact({
    resource: resource.text('resource'),
    resourceName: resource.text('resourceName'),
    scopesSupported: resource.list('scopesSupported'),
    resourceSigningAlgValuesSupported: resource.list('resourceSigningAlgValuesSupported'),
    resourceDocumentation: resource.text('resourceDocumentation'),
    resourcePolicyUri: resource.text('resourcePolicyUri'),
  })
  const providers = [compact({ issuer, audiences, jwks })]
  return { mode: 'Strict', providers, mcp: { resourceMetadata } }
}

/** Without a key set, the source reads where it is from the metadata of the issuer. */
function keysOfIssuer(issuer: string, oauth: SourceField, result: Conversion): Fields | undefined {
  const address = parseAddress(issuer)
  if (address === undefined) return oauth.report('protection', 'the issuer is not a URL')
  const jwksPath = `${address.path}/.well-known/jwks.json`
  oauth.report(
    'changed',
    `the keys are expected at ${jwksPath} of the issuer; correct the path if its metadata names another one`,
  )
  return { remote: { jwksPath, backendRef: addStatic(result, address, oauth) } }
}

/** Rules about tools: every selector must hold, and what the first matching rule says. */
function authorizationOf(
  authorization: SourceField,
  selectors: readonly string[],
): Fields | undefined {
  const rules = authorization.isSet ? [orderedRules(authorization, conditionOf, 'Allow')] : []
  const all = [...selectors, ...rules].map((rule) => `(${rule})`)
  if (all.length === 0) return undefined
  return { action: 'Require', policy: { matchExpressions: [all.join(' && ')] } }
}

function conditionOf(rule: SourceField): string | undefined {
  const tools = rule
    .at('target', 'tools')
    .items()
    .map((tool) => {
      const name = quote(tool.text('tool') ?? '')
      return `${isTarget(tool.text('backend') ?? '')} && mcp.tool.name == ${name}`
    })
  const parts = [
    ...(tools.length > 0 ? [tools.map((tool) => `(${tool})`).join(' || ')] : []),
    ...claimConditions(rule.at('source', 'jwt')),
  ]
  if (rule.has('cel')) {
    return rule
      .get('cel')
      .refuse('stricter', 'its variables have other names here; requests that reach it are refused')
  }
  return parts.length === 0 ? 'true' : parts.map((part) => `(${part})`).join(' && ')
}
