/** Bytes to where a GatewayBackend leads. */
import type {
  Backend as BackendMessage,
  Backend_Provider as ProviderMessage,
  Backend_Target as TargetMessage,
} from '../../proto/gen/resource_pb.ts'
import { vendorNames } from '../backends/ai/providers/index.ts'
import type { McpDestination, McpTarget } from '../model/mcp-targets.ts'
import type { ModelProvider } from '../model/model-providers.ts'
import type { Destination } from '../model/resources.ts'
import { oneOf, Unreadable } from './unreadable.ts'

function decodeProvider(message: ProviderMessage): ModelProvider {
  const { name, host, port, path, vendor, model, endpoint } = message
  const { deploymentName, apiVersion, projectId, region, guardrail } = message
  return {
    ...(name !== undefined && { name }),
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
    ...(path !== undefined && { path }),
    config: {
      vendor: oneOf(vendorNames, vendor, 'vendor'),
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

const mcpProtocols = ['StreamableHTTP', 'SSE'] as const

function decodeTarget({ name, sections, protocol, path, destination }: TargetMessage): McpTarget {
  return {
    name,
    sections,
    protocol: oneOf(mcpProtocols, protocol, 'MCP protocol'),
    path,
    destination: decodeTargetDestination(destination),
  }
}

function decodeTargetDestination(destination: TargetMessage['destination']): McpDestination {
  switch (destination.case) {
    case 'static':
      return { type: 'static', host: destination.value.host, port: destination.value.port }
    case 'service': {
      const { namespace, name, port } = destination.value
      return { type: 'service', namespace, name, port }
    }
    default:
      throw new Unreadable('an MCP target of a type that this version does not know')
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
    case 'mcp':
      return {
        type: 'mcp',
        targets: destination.value.targets.map(decodeTarget),
        isStateless: destination.value.stateless,
      }
    case 'unsupported':
      return { type: 'unsupported', message: destination.value.message }
    default:
      throw new Unreadable('a destination of a type that this version does not know')
  }
}
