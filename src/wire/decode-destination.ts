/** Bytes to where a GatewayBackend leads. */
import type {
  Backend as BackendMessage,
  Backend_Provider as ProviderMessage,
} from '../../proto/gen/resource_pb.ts'
import type { ModelProvider } from '../model/model-providers.ts'
import type { Destination } from '../model/resources.ts'
import { oneOf, Unreadable } from './unreadable.ts'

const vendors = ['vendorA', 'vendorB', 'vendorC', 'vendorD', 'vendorE', 'vendorF'] as const

function decodeProvider(message: ProviderMessage): ModelProvider {
  const { name, host, port, path, vendor, model, endpoint } = message
  const { deploymentName, apiVersion, projectId, region, guardrail } = message
  return {
    ...(name !== undefined && { name }),
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
    ...(path !== undefined && { path }),
    config: {
      vendor: oneOf(vendors, vendor, 'vendor'),
      ...(model !== undefined && { model }),
      ...(endpoint !== undefined && { endpoint }),
      ...(deploymentName !== undefined && { deploymentName }),
      ...(apiVersion !== undefined && { apiVersion }),
      ...(projectId !== undefined && { projectId }),
      ...(region !== undefined && { region }),
      ...(guardrail !== undefined && {
        guardrail: { identifier: guardrail.identifier, version: guardrail.version },
      }),
    },
  }
}

export function decodeDestination({ destination }: BackendMessage): Destination {
  switch (destination.case) {
    case 'static':
      return { type: 'static', host: destination.value.host, port: destination.value.port }
    case 'dynamic':
      return { type: 'dynamic' }
    case 'ai':
      return {
        type: 'ai',
        groups: destination.value.groups.map(({ providers }) => providers.map(decodeProvider)),
      }
    case 'unsupported':
      return { type: 'unsupported', message: destination.value.message }
    default:
      throw new Unreadable('a destination of a type that this version does not know')
  }
}
