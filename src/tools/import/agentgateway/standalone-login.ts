/** Converts policies of the standalone agentgateway about users, MCP clients and their tokens. */
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { addSecret, addStatic, parseAddress } from '../targets.ts'
import type { RouteScene } from './standalone-scene.ts'

/** `strict` is the default of both products. */
export const modeOf = (field: SourceField): Fields => {
  const mode = field.text('mode')
  return mode === undefined ? {} : { mode: `${mode[0]?.toUpperCase()}${mode.slice(1)}` }
}

/** The key set at a URL, which is under `url` or is the whole value; undefined, and reported, for others. */
export function keysOf(field: SourceField, result: Conversion): Fields | undefined {
  const text = typeof field.value === 'string' ? field.text() : field.text('url')
  const found = text === undefined ? undefined : keySetAt(text, field, result)
  if (found !== undefined) return found
  return field.refuse('protection', 'needs a url: put keys of a file inline into the manifest')
}

function keySetAt(text: string, origin: SourceField, result: Conversion): Fields | undefined {
  const url = parseAddress(text)
  return url && { jwksPath: url.path || '/', backendRef: addStatic(result, url, origin) }
}

/** Identity providers whose deviations both products correct, and where they have their keys. */
const providers: Readonly<Record<string, { readonly name: string; readonly keys: string }>> = {
  auth0: { name: 'IdpA', keys: '/.well-known/jwks.json' },
  keycloak: { name: 'IdpB', keys: '/protocol/openid-connect/certs' },
  okta: { name: 'Okta', keys: '/v1/keys' },
  authentik: { name: 'Authentik', keys: '/jwks/' },
}

export function mcpAuthentication(field: SourceField, { plan, result }: RouteScene): void {
  const issuer = field.text('issuer')
  const [[label = '', settings] = []] = field.entries('provider')
  settings?.take()
  const provider = Object.hasOwn(providers, label) ? providers[label] : undefined
  if (label !== '' && provider === undefined) {
    field.get('provider').report('lost', `the provider ${label} has no counterpart`)
  }
  plan.mcp.authentication = compact({
    ...modeOf(field),
    issuer,
    audiences: filled([...field.texts('audiences'), ...field.texts('audience')]),
    provider: provider?.name,
    clientId: field.text('clientId'),
    resourceMetadata: field.take('resourceMetadata'),
    jwks: mcpKeys(field, issuer, provider?.keys ?? '/.well-known/jwks.json', result),
  })
}

/** The keys of MCP clients: those that are named, or else those at the place where the issuer has them. */
function mcpKeys(
  field: SourceField,
  issuer: string | undefined,
  path: string,
  result: Conversion,
): Fields | undefined {
  const named = ['jwks', 'jwksUrl'].map((name) => field.get(name)).find(({ isSet }) => isSet)
  if (named !== undefined) return keysOf(named, result)
  if (issuer === undefined) return undefined
  return keySetAt(`${issuer.replace(/\/+$/, '')}${path}`, field, result)
}

/** Users with the hashes of their passwords, as in an htpasswd file. */
export function basicAuth(field: SourceField, { plan, name, result }: RouteScene): void {
  const source = field.get('htpasswd')
  const text = typeof source.value === 'string' ? source.text() : undefined
  const secret = result.nameOf('Secret', `${name}-passwords`)
  if (text === undefined) {
    const file = source.text('file') ?? 'FILE'
    const command = `kubectl create secret generic ${secret} --from-file=.htaccess=${file}`
    const reason = `create the Secret ${secret} from this file: ${command}; until then every user is refused`
    source.report('secret', reason)
  } else {
    source.report('secret', `the users are now in Secret ${secret}`)
    addSecret(result, secret, { '.htaccess': text }, field)
  }
  const realm = field.text('realm')
  const secretRef = { name: secret }
  const location = field.take('location')
  plan.traffic.basicAuthentication = compact({ ...modeOf(field), location, realm, secretRef })
}

/** Rules about tools. A policy has one action, so that rules of several actions become one condition. */
export function mcpAuthorization(
  rules: readonly { readonly action: string; readonly expressions: readonly string[] }[],
  { plan }: RouteScene,
): void {
  const [first, second] = rules
  if (first === undefined) return
  const parts = rules.map(({ action, expressions }) => {
    const each = expressions.map((expression) => `(${expression})`)
    if (action === 'Deny') return each.map((expression) => `!${expression}`).join(' && ')
    return action === 'Allow' ? `(${each.join(' || ')})` : each.join(' && ')
  })
  plan.mcp.authorization =
    second === undefined
      ? { action: first.action, policy: { matchExpressions: first.expressions } }
      : { action: 'Require', policy: { matchExpressions: [parts.join(' && ')] } }
}
