/** Says in words what a derivation has read, for people who know the configuration but not the code. */
import { isApiDocument, keySetText } from '../../ground/model/key-sets.ts'
import { gatewayRef, type ObjectKey, objectText, parseObjectKey } from '../../ground/model/names.ts'

/** The object that a derivation has read, itself (`object:KEY`) or as derived (`value:STAGE:KEY`). */
export const objectRead = (read: string): ObjectKey | undefined =>
  /^(?:object|value:[^:]*):(.*)$/s.exec(read)?.[1]

/** `listener/Gateway/default/edge/http` as `listener http of Gateway default/edge`. */
function listenerText(key: string): string {
  const [, object = '', name = ''] = /^listener\/(.*)\/([^/]*)$/s.exec(key) ?? []
  return object === '' ? key : `listener ${name} of ${objectText(parseObjectKey(object))}`
}

/** `HTTPRoute/default/app#rule` as `rule of HTTPRoute default/app`. */
function targetText(key: string): string {
  const [object = '', section = ''] = key.split('#')
  return section === '' ? objectOf(object) : `${section} of ${objectOf(object)}`
}

/** `default/edge` as `Gateway default/edge`. */
const gatewayOf = (name: string): string => objectText(gatewayRef(name))

const objectOf = (key: string): string => objectText(parseObjectKey(key))

/** The namespace in which an index looks, if it does not look in all of them. */
const inNamespace = (namespace: string): string =>
  namespace === '' ? 'in all namespaces' : `in namespace ${namespace}`

/** `Secret/default` as `Secrets with labels in namespace default`. */
function labelledText(key: string): string {
  const [kind = '', namespace = ''] = key.split('/')
  const plural = kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`
  return `${plural} with labels ${inNamespace(namespace)}`
}

/** `=HOST` as `for HOST`; `*SUFFIX` (a wildcard) and `<SUFFIX` (every host below) as `for *SUFFIX`. */
function hostsText(place: string): string {
  const name = place.slice(1)
  if (place.startsWith('=')) return `for ${name}`
  if (name === '') return 'for any host'
  return `for *${name}`
}

/** `GRPCRoute listener/Gateway/default/edge/http =shop.example.com` */
function claimsText(key: string): string {
  const [kind = '', listener = '', place = ''] = key.split(' ')
  return `${kind}s ${hostsText(place)} on ${listenerText(listener)}`
}

/** `PostRouting traffic.cors HTTPRoute/default/app` */
function policyClaimsText(key: string): string {
  const [phase = '', field = '', target = ''] = key.split(' ')
  const early = phase === 'PreRouting' ? ' before routing' : ''
  return `policies that set ${field}${early} on ${targetText(target)}`
}

/** Texts by the name of the source. They get the rest of the key. */
const texts: Readonly<Record<string, (key: string) => string>> = {
  'fact:absent': (key) => `whether ${gatewayOf(key)} has no proxy`,
  'fact:mcp-lists': (name) => `what proxies have seen that GatewayBackend ${name} lists`,
  'fact:dynamic-keys': (namespace) => `dynamic API keys ${inNamespace(namespace)}`,
  'fact:silent': (key) => `whether a proxy of ${gatewayOf(key)} does not answer`,
  'fact:older': (key) => `whether a proxy of ${gatewayOf(key)} is of an older version`,
  'fact:addresses': (key) => `addresses of the proxies of ${gatewayOf(key)}`,
  'fact:deployment': (key) => `whether the deployment for ${objectOf(key)} failed`,
  'fact:programmed': (key) => `generation of ${objectOf(key)} that proxies have in force`,
  'fact:refused': (key) => `whether a proxy rejected ${objectOf(key)}`,
  'fact:rejected': (key) => `whether a proxy rejected ${listenerText(key)}`,
  'fact:rejected-code': (key) => `why a proxy rejected ${listenerText(key)}`,
  'fact:gateway-api-versions': () => 'versions of the Gateway API in the cluster',
  'fact:unread-kinds': () => 'kinds that the cluster does not have',
  'fact:key-set': (key) =>
    `${isApiDocument(key) ? 'OpenAPI document at' : 'keys of'} ${keySetText(key)}`,
  'fact:key-sets-pending': () => 'whether keys are fetched',
  'index:models': (key) => `AgentgatewayModels of ${objectOf(key)}`,
  'index:listener-sets': (key) => `ListenerSets of ${gatewayOf(key)}`,
  'index:gateway-services': (key) => `Services for Gateways with the name ${key}`,
  'index:inference-pools': (key) => `InferencePools ${inNamespace(key)}`,
  'index:backend-tls-targets': (key) => `BackendTLSPolicies for ${targetText(key)}`,
  'index:external-auth-targets': (key) => `ExternalAuth policies for ${targetText(key)}`,
  'index:http-routes': (key) => `HTTPRoutes ${inNamespace(key)}`,
  'index:services': (key) => `Services ${inNamespace(key)}`,
  'index:grants': (key) => `ReferenceGrants ${inNamespace(key)}`,
  'index:stdio-parameters': () => 'GatewayParameters that turn stdio servers on',
  'index:labelled': labelledText,
  'relation:attached': (key) => `routes attached to ${listenerText(key)}`,
  'relation:claims': claimsText,
  'relation:delegates': (key) => `rules that delegate requests to ${objectOf(key)}`,
  'relation:policy-claims': policyClaimsText,
  'relation:reach': (key) => `Gateways that send requests to ${objectOf(key)}`,
  'relation:reach-by-policy': (key) => `Gateways with a policy that calls ${objectOf(key)}`,
  'relation:pool-accepted': (key) => `Gateways whose routes send requests to ${objectOf(key)}`,
  'relation:pool-refused': (key) => `Gateways that accept no route to ${objectOf(key)}`,
}

/**
 * Says what a key of a read means. An object, or what was derived from it, is `KIND NAMESPACE/NAME`; a source
 * that has no text is its key.
 */
export function readText(key: string): string {
  const object = objectRead(key)
  if (object !== undefined) return objectOf(object)
  const [, source = '', name = ''] =
    /^(fact:[^:]*):?(.*)$/s.exec(key) ?? /^((?:index|relation):[^ ]*) ?(.*)$/s.exec(key) ?? []
  return texts[source]?.(name) ?? key
}
