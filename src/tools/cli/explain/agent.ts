/** `sluice explain agent` shows which methods of an A2A agent the rules allow, for each route to the agent. */
import { a2aMethods, methodNamed } from '../../../gateway/backends/a2a/protocol/methods.ts'
import { foldEvents } from '../../../past/replay/index.ts'
import {
  type OpenRecording,
  type RecordingOptions,
  reportProblems,
  withRecording,
} from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'
import { type RouteVerdict, routeVerdicts } from './route-rules.ts'

/** @param method a name of any version, such as `message/send`; all methods if undefined. @throws UsageError */
export async function explainAgent(
  agent: string,
  method: string | undefined,
  options: RecordingOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const methods = method === undefined ? a2aMethods : [methodOf(method)]
  const read = async (recording: OpenRecording) => {
    const { events, derivation, extent } = recording
    const fold = await foldEvents(events, derivation, extent.base)
    reportProblems(recording, report)
    return fold.resources()
  }
  const resources = await withRecording(options, read, 'nearest')
  const isAgent = resources.some(({ resource }) => {
    if (resource.type !== 'backend' || resource.destination.type !== 'a2a') return false
    return `${resource.namespace}/${resource.name}` === agent
  })
  if (!isAgent) {
    report(`there is no GatewayBackend ${agent} of type a2a`)
    return { text: () => [], exitCode: exitCode.negative }
  }
  const explained = methods.map((name) => {
    const known = { a2a: { method: name, agent } }
    const [sections, field] = [[], 'a2a'] as const
    const question = { backend: agent, sections, field, known, knownOfMessage: known }
    return { method: name, routes: routeVerdicts(resources, question).map(joined) }
  })
  const [first] = explained
  return {
    text: () =>
      first?.routes.length === 0
        ? [`no route leads to ${agent}`]
        : explained.flatMap(({ method: name, routes }) => [name, ...routes.flatMap(textOf)]),
    json: explained,
  }
}

/** Returns the route with one verdict, of the authorization rules and of XAccessPolicies. */
function joined({ access, ...route }: RouteVerdict): Explained {
  const both = [route.verdict, access]
  const verdict = both.find((one) => one === 'refused') ?? both.find((one) => one !== 'allowed')
  return { ...route, verdict: verdict ?? 'allowed' }
}

type Explained = Omit<RouteVerdict, 'access'>

function methodOf(name: string): string {
  const found = a2aMethods.find((one) => one === name) ?? methodNamed(name)
  if (found !== undefined) return found
  throw new UsageError(`A2A has no method ${name}; it has ${a2aMethods.join(', ')}`)
}

const textOf = ({ route, hosts, verdict, rules }: Explained): string[] => [
  `  ${route}${hosts.length === 0 ? '' : ` (${hosts.join(', ')})`}: ${verdict}`,
  ...rules.map((rule) => `    ${rule}`),
]
