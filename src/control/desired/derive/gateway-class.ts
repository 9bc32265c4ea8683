/** GatewayClass: whether it belongs to this controller, and whether its parameters exist. */

import { controllerName, defaultClassName } from '../../../ground/model/api-names.ts'
import type { DecidedCondition } from '../../../ground/model/conditions.ts'
import { routeKinds } from '../../api/kinds.ts'
import { conditionFalse, conditionTrue } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { resolveParameters } from './parameters.ts'

/** Supported features of Gateway API. Conformance tools read them from the status. */
const supportedFeatures = [
  ...routeKinds.map(({ kind }) => kind),
  'BackendTLSPolicy',
  'BackendTLSPolicySANValidation',
  'GRPCRouteNamedRouteRule',
  'Gateway',
  'GatewayAddressEmpty',
  'GatewayBackendClientCertificate',
  'GatewayFrontendClientCertificateValidation',
  'GatewayFrontendClientCertificateValidationInsecureFallback',
  'GatewayHTTPListenerIsolation',
  'GatewayHTTPSListenerDetectMisdirectedRequests',
  'GatewayInfrastructurePropagation',
  'GatewayPort8080',
  'GatewayStaticAddresses',
  'HTTPRoute303RedirectStatusCode',
  'HTTPRoute307RedirectStatusCode',
  'HTTPRoute308RedirectStatusCode',
  'HTTPRouteBackendProtocolH2C',
  'HTTPRouteBackendProtocolWebSocket',
  'HTTPRouteBackendRequestHeaderModification',
  'HTTPRouteBackendTimeout',
  'HTTPRouteCORS',
  'HTTPRouteDestinationPortMatching',
  'HTTPRouteHostRewrite',
  'HTTPRouteMethodMatching',
  'HTTPRouteNamedRouteRule',
  'HTTPRouteParentRefPort',
  'HTTPRoutePathRedirect',
  'HTTPRoutePathRewrite',
  'HTTPRoutePortRedirect',
  'HTTPRouteQueryParamMatching',
  'HTTPRouteRequestMirror',
  'HTTPRouteRequestMultipleMirrors',
  'HTTPRouteRequestPercentageMirror',
  'HTTPRouteRequestTimeout',
  'HTTPRouteResponseHeaderModification',
  'HTTPRouteRetry',
  'HTTPRouteRetryBackendTimeout',
  'HTTPRouteRetryConnectionError',
  'HTTPRouteSchemeRedirect',
  'ListenerSet',
  'ReferenceGrant',
  'TLSRouteModeMixed',
  'TLSRouteModeTerminate',
]
  .sort()
  .map((name) => ({ name }))

/** Name of the input with the versions of the Gateway API CRDs in the cluster, separated by commas. */
export const gatewayApiVersions = 'gateway-api-versions'

/** The supported minor version of Gateway API. Its patch versions differ only in documentation. */
const supportedMinor = 'v1.6'

/** The condition SupportedVersion; undefined if there is no cluster whose CRDs have a version. */
function supportedVersion(read: Reader, generation: number): DecidedCondition | undefined {
  const text = read.input<string>(gatewayApiVersions)
  if (text === undefined) return undefined
  const others = text.split(',').filter((version) => !version.startsWith(`${supportedMinor}.`))
  if (others.length === 0) return conditionTrue('SupportedVersion', 'SupportedVersion', generation)
  const named = others.map((version) => version || 'no stated version').join(', ')
  const message = `the cluster has Gateway API definitions of ${named}; this controller supports ${supportedMinor} and ignores what that version does not have`
  return conditionFalse('SupportedVersion', 'UnsupportedVersion', generation, message)
}

export const gatewayClassStage: Stage = {
  name: 'gateway-class',
  kinds: ['GatewayClass'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return {}
    const spec = specOf<'GatewayClass'>(self.object)
    if (spec.controllerName !== controllerName) return {}
    const { problem } = resolveParameters(spec.parametersRef, undefined, read)
    const accepted =
      problem === undefined
        ? conditionTrue('Accepted', 'Accepted', self.generation)
        : conditionFalse(
            'Accepted',
            'InvalidParameters',
            self.generation,
            problem.message,
            problem.own,
          )
    const supported = supportedVersion(read, self.generation)
    const conditions = supported === undefined ? [accepted] : [accepted, supported]
    return { status: { conditions, supportedFeatures } }
  },
}

/** Whether the class belongs to this controller. The default class needs no manifest. */
export function isOurClass(name: string, read: Reader): boolean {
  const state = read.object('GatewayClass', '', name)
  if (state?.object === undefined) return name === defaultClassName
  return specOf<'GatewayClass'>(state.object).controllerName === controllerName
}
