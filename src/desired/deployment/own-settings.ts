/**
 * What parameters say of settings that a pod also says something about: by a variable, or in the
 * configuration file. A generated variable would hide the file, so it is left out where the file has
 * a say; and probes, ports and the grace period of the pod follow what the proxy is told.
 */
import type { ProxyParameters } from './parameters.ts'
import { isMap } from './strategic-merge.ts'

/** Name in the file -> variable; the pod's identity and places, which nobody else can know. */
const fixed: Readonly<Record<string, string>> = {
  gateway: 'SLUICE_GATEWAY',
  xdsAddress: 'SLUICE_XDS_ADDRESS',
  xdsTokenFile: 'SLUICE_XDS_TOKEN_FILE',
  xdsCaFile: 'SLUICE_XDS_CA_FILE',
  stateDir: 'SLUICE_STATE_DIR',
  proxyName: 'SLUICE_PROXY_NAME',
  advertiseAddress: 'SLUICE_ADVERTISE_ADDRESS',
}

/** What `config` of the file says of a setting; undefined where it says nothing. */
export function fileSetting({ rawConfig }: ProxyParameters, name: string): unknown {
  const config = isMap(rawConfig) ? rawConfig.config : undefined
  const value = isMap(config) && Object.hasOwn(config, name) ? config[name] : undefined
  return value ?? undefined
}

/** Fields of rawConfig that generated variables hide for good. */
export function hiddenSettings(parameters: ProxyParameters): string[] {
  return Object.keys(fixed).filter((name) => fileSetting(parameters, name) !== undefined)
}

/** A variable wins over the file; one whose value is from elsewhere is not known here. */
function said(parameters: ProxyParameters, name: string, variable: string): unknown {
  const own = parameters.env?.find((one) => one.name === variable)
  return own === undefined ? fileSetting(parameters, name) : own.value
}

/** The port of an address that the proxy is told; undefined where it is off. */
function portOf(address: unknown, standard: number): number | undefined {
  if (address === 'off') return undefined
  const [, digits] = typeof address === 'string' ? (/:([0-9]{1,5})$/.exec(address) ?? []) : []
  const port = Number(digits ?? 0)
  return port >= 1 && port <= 65_535 ? port : standard
}

/** Where the proxy serves its metrics. */
export function statsPort(parameters: ProxyParameters): number | undefined {
  return portOf(said(parameters, 'statsAddress', 'SLUICE_STATS_ADDRESS'), 15_020)
}

/** Where the proxy tells that it is ready. */
export function readinessPort(parameters: ProxyParameters): number | undefined {
  return portOf(said(parameters, 'readinessAddress', 'SLUICE_READINESS_ADDRESS'), 15_021)
}

/** Seconds, where nobody says. */
const defaultShutdown = { min: 10, max: 60 } as const

/** Whole seconds, as a number or as `30s`. */
function secondsOf(value: unknown): number | undefined {
  const [, digits] = /^([0-9]{1,8})s?$/.exec(String(value)) ?? []
  return digits === undefined ? undefined : Number(digits)
}

/**
 * The deadlines of the pod, in seconds. `min` and `max` are absent where the file has them by itself
 * and no typed field does; `graceSeconds` is when the platform kills.
 */
export function deadlines(parameters: ProxyParameters): {
  readonly min?: number
  readonly max?: number
  readonly graceSeconds: number
} {
  const { shutdown } = parameters
  if (shutdown !== undefined) return { ...shutdown, graceSeconds: shutdown.max }
  const min = fileSetting(parameters, 'connectionMinTerminationDeadline')
  const max = fileSetting(parameters, 'terminationGracePeriodSeconds')
  const graceSeconds = max === undefined ? undefined : secondsOf(max)
  return {
    ...(min === undefined && { min: defaultShutdown.min }),
    ...(graceSeconds === undefined && { max: defaultShutdown.max }),
    graceSeconds: graceSeconds ?? defaultShutdown.max,
  }
}
