/** Converts policies of the standalone agentgateway that call a service: authorization, processing, limits. */
import { compact, type Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { addStatic } from '../targets.ts'
import { hostOf, type RouteScene } from './standalone-scene.ts'

/** A policy with one of these names a service that is not converted, or differs by request. */
const otherTargets = ['service', 'backend', 'conditional'] as const

/**
 * Returns a reference to the service of a policy. If it cannot be converted, the whole policy is reported as
 * a lost protection, and undefined is returned.
 */
function serviceOf(field: SourceField, { result }: RouteScene) {
  const other = otherTargets.find((name) => field.has(name))
  const address = other === undefined ? hostOf(field.get('host'), 'protection') : undefined
  if (other !== undefined) {
    field.refuse('protection', `only a host is converted, not ${other}`)
  }
  if (address === undefined) return undefined
  const tls = field.at('policies', 'backendTLS')
  const isUnverified = tls.flag('insecure') === true
  const policies = isUnverified ? { tls: { insecureSkipVerify: 'All' } } : {}
  return addStatic(result, { ...address, isTls: tls.isSet }, field, policies)
}

/** Sluice refuses requests if the service fails. */
function failureOf(field: SourceField): void {
  const mode = field.get('failureMode')
  if (!mode.isSet || mode.value === 'deny' || mode.value === 'failClosed') return
  mode.refuse('stricter', 'requests are refused if the service fails')
}

const textsOf = (field: SourceField): Fields | undefined =>
  field.isSet
    ? Object.fromEntries(field.entries().map(([name, value]) => [name, value.text() ?? '']))
    : undefined

function bodyOf(field: SourceField): Fields | undefined {
  if (!field.isSet) return undefined
  field.ignore('packAsBytes')
  const partial = field.get('allowPartialMessage')
  if (partial.flag() === true)
    partial.report('changed', 'a larger body is refused with 413 instead of cut off')
  return { maxSize: field.number('maxRequestBytes') ?? 8192 }
}

export function extAuthz(field: SourceField, scene: RouteScene): void {
  const backendRef = serviceOf(field, scene)
  if (backendRef === undefined) return
  failureOf(field)
  const forwardBody = bodyOf(field.get('includeRequestBody'))
  const headers = field.get('includeRequestHeaders')
  const protocol = field.get('protocol')
  const http = protocol.get('http')
  if (http.isSet) {
    scene.plan.traffic.extAuth = compact({
      backendRef,
      forwardBody,
      http: {
        path: http.text('path'),
        redirect: http.text('redirect'),
        allowedRequestHeaders: field.list('includeRequestHeaders'),
        addRequestHeaders: textsOf(http.get('addRequestHeaders')),
        allowedResponseHeaders: http.list('includeResponseHeaders'),
        responseMetadata: textsOf(http.get('metadata')),
      },
    })
    return
  }
  headers.lose('a service over gRPC gets all headers of the request', 'changed')
  // Earlier versions have `context` beside the host.
  const grpc = protocol.get('grpc')
  const context = grpc.has('context') ? grpc.get('context') : field.get('context')
  scene.plan.traffic.extAuth = compact({
    backendRef,
    forwardBody,
    grpc: { contextExtensions: textsOf(context), requestMetadata: textsOf(grpc.get('metadata')) },
  })
}

export function extProc(field: SourceField, scene: RouteScene): void {
  const backendRef = serviceOf(field, scene)
  if (backendRef === undefined) return
  failureOf(field)
  scene.plan.traffic.extProc = { backendRef }
}

export function remoteRateLimit(field: SourceField, scene: RouteScene): void {
  const backendRef = serviceOf(field, scene)
  if (backendRef === undefined) return
  failureOf(field)
  const descriptors = field.items('descriptors').map((descriptor) => ({
    unit: descriptor.text('type') === 'tokens' ? 'Tokens' : 'Requests',
    entries: descriptor.items('entries').map((entry) => ({
      name: entry.text('key') ?? '',
      expression: entry.text('value') ?? '',
    })),
  }))
  scene.plan.globalLimit = { backendRef, domain: field.text('domain') ?? '', descriptors }
}
