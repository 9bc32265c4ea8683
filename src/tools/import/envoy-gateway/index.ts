/** The source `envoy-gateway`: kinds of Envoy Gateway and Envoy AI Gateway. */

import { isObject } from '../../../ground/base/json-object.ts'
import { gatewayGroup, ownGroup } from '../../../ground/model/api-names.ts'
import type { Conversion, Fields, ImportedManifest } from '../conversion.ts'
import type { SourceDocument, SourceField } from '../field.ts'
import { convertClass, isObjectOf, isStandard, openObject, wholeObject } from '../kubernetes.ts'
import { type ImportSource, objectKind } from '../source.ts'
import { forwardedHeaders } from '../targets.ts'
import { convertModelRoute } from './ai-routes.ts'
import { convertBackendTrafficPolicy } from './backend-traffic.ts'
import { Backends } from './backends.ts'
import { convertClientTrafficPolicy } from './client-traffic.ts'
import { convertMcpRoute } from './mcp-routes.ts'
import { convertQuotaPolicy } from './quotas.ts'
import { convertSecurityPolicy } from './security.ts'

const group = 'gateway.envoyproxy.io'
const aiGroup = 'aigateway.envoyproxy.io'

const isOurs = (document: SourceDocument): boolean =>
  objectKind(document)?.group === aiGroup || isObjectOf(document, group)

export const envoyGateway: ImportSource = {
  name: 'envoy-gateway',
  port: 80,
  detects: isOurs,
  convert: convertAll,
}

const policyKinds = ['SecurityPolicy', 'BackendTrafficPolicy', 'ClientTrafficPolicy', 'QuotaPolicy']

function convertAll(documents: readonly SourceDocument[], result: Conversion): void {
  const opened = documents.flatMap((document) => {
    const field = openObject(document, result)
    return field === undefined ? [] : [{ field, kind: objectKind(document)?.kind ?? '', document }]
  })
  const of = (kind: string) =>
    opened.filter((entry) => entry.kind === kind).map(({ field }) => field)
  // Secrets first, since policies copy what they contain; TLS policies before what connects to their backends.
  const early = ['BackendTLSPolicy', 'Secret']
  const order = ({ kind }: { kind: string }) => -early.indexOf(kind)
  const backends = new Backends(
    of('Backend'),
    of('AIServiceBackend'),
    of('BackendSecurityPolicy'),
    result,
  )
  const configured = new Set(
    of('ClientTrafficPolicy').flatMap((field) => convertClientTrafficPolicy(field, result)),
  )
  for (const { field, kind, document } of opened.toSorted((a, b) => order(a) - order(b))) {
    if (isStandard(document)) addStandard(field, kind, { backends, configured }, result)
    else if (kind === 'AIGatewayRoute') convertModelRoute(field, backends, result)
    else if (kind === 'MCPRoute') convertMcpRoute(field, backends, result)
    else if (!policyKinds.includes(kind) && !backends.kinds.includes(kind)) reportKind(field, kind)
  }
  for (const field of of('QuotaPolicy')) convertQuotaPolicy(field, backends, result)
  for (const field of of('SecurityPolicy')) convertSecurityPolicy(field, backends, result)
  for (const field of of('BackendTrafficPolicy')) convertBackendTrafficPolicy(field, result)
}

/** Kinds that describe the Deployment of Envoy protect nothing; patches and extensions may. */
function reportKind(field: SourceField, kind: string): void {
  field.take()
  const isHarmless = kind === 'EnvoyProxy' || kind === 'GatewayConfig'
  field.report(isHarmless ? 'lost' : 'protection', `${kind} has no counterpart`)
}

function addStandard(
  field: SourceField,
  kind: string,
  { backends, configured }: { backends: Backends; configured: ReadonlySet<string> },
  result: Conversion,
): void {
  const object = convertClass(wholeObject(field), group)
  const spec = object.spec
  if (!isObject(spec)) result.add(object, field)
  else if (kind === 'HTTPRoute' || kind === 'GRPCRoute') {
    result.add(
      { ...object, spec: { ...spec, rules: backends.convertRules(spec.rules, field) } },
      field,
    )
  } else if (kind === 'Gateway' || kind === 'GatewayClass') {
    result.add(withoutParameters(object, field), field)
    const { namespace = '', name } = object.metadata
    if (kind === 'Gateway' && !configured.has(`${namespace}/${name}`)) {
      addForwardedHeaders(object, field, result)
    }
  } else if (kind === 'BackendTLSPolicy') {
    const targetRefs = (Array.isArray(spec.targetRefs) ? (spec.targetRefs as Fields[]) : []).map(
      (ref) => (ref.group === group ? { ...ref, group: ownGroup, kind: 'GatewayBackend' } : ref),
    )
    convertTlsPolicy(object, targetRefs, field, backends, result)
  } else result.add(object, field)
}

/** Envoy tells backends who the client is, with headers that clients cannot forge. */
function addForwardedHeaders(
  { metadata }: ImportedManifest,
  field: SourceField,
  result: Conversion,
): void {
  const home = result.namespace
  result.namespace = metadata.namespace
  const target = { group: gatewayGroup, kind: 'Gateway', name: metadata.name }
  const frontend = { forwarded: forwardedHeaders.appended }
  result.policy(`${metadata.name}-forwarded-headers`, [target], { frontend }, field)
  result.namespace = home
}

/** A BackendTLSPolicy of a Backend becomes the TLS settings of its GatewayBackend. */
function convertTlsPolicy(
  object: ImportedManifest,
  targetRefs: readonly Fields[],
  field: SourceField,
  backends: Backends,
  result: Conversion,
): void {
  const isOwn = (ref: Fields) => ref.group === ownGroup
  const own = targetRefs.filter(isOwn)
  const others = targetRefs.filter((ref) => !isOwn(ref))
  const spec = object.spec as Fields
  const validation = (isObject(spec.validation) ? spec.validation : {}) as Fields
  const refs = Array.isArray(validation.caCertificateRefs)
    ? (validation.caCertificateRefs as Fields[])
    : []
  const tls = {
    ...(typeof validation.hostname === 'string' && {
      sni: validation.hostname,
      verifySubjectAltNames: [validation.hostname],
    }),
    ...(refs.length > 0 && {
      caCertificateRefs: refs.map(({ name, kind }) => ({
        ...(kind === 'Secret' && { kind }),
        name,
      })),
    }),
  }
  if (refs.length > 1) field.report('changed', 'only one reference to certificates is possible')
  if (own.length > 0) {
    for (const ref of own) backends.secure(String(ref.name), tls)
    const names = own.flatMap((ref) => backends.namesOf(String(ref.name)))
    const all = names.map((name) => ({ group: ownGroup, kind: 'GatewayBackend', name }))
    result.namespace = object.metadata.namespace
    result.policy(`${object.metadata.name}-tls`, all, { backend: { tls } }, field)
  }
  if (others.length > 0) result.add({ ...object, spec: { ...spec, targetRefs: others } }, field)
}

/** Parameters of Envoy's Deployment. */
function withoutParameters(object: ImportedManifest, field: SourceField): ImportedManifest {
  const spec = object.spec as Fields
  const infrastructure = (isObject(spec.infrastructure) ? spec.infrastructure : {}) as Fields
  const reference = spec.parametersRef ?? infrastructure.parametersRef
  if (!isObject(reference) || reference.group === gatewayGroup) return object
  field.report('lost', 'the parameters of Envoy have no counterpart; see GatewayParameters')
  const { parametersRef: _first, ...rest } = spec
  const { parametersRef: _second, ...kept } = infrastructure
  const { infrastructure: _all, ...plain } = rest
  return {
    ...object,
    spec: Object.keys(kept).length > 0 ? { ...plain, infrastructure: kept } : plain,
  }
}
