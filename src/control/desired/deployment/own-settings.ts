/**
 * Settings of the proxy that its pod depends on, and that users can set by an environment variable or
 * in the configuration file. Variables override the file, so none is generated for a setting in the
 * file. Probes, ports and the grace period of the pod follow these settings.
 */
import type { ProxyParameters } from './parameters.ts'
import { isMap } from './strategic-merge.ts'

/** Settings that only the controller can set (the proxy's identity and folders), and their variables. */
const controllerVariables: Readonly<Record<string, string>> = {
  gateway: 'SLUICE_GATEWAY',
  xdsAddress: 'SLUICE_XDS_ADDRESS',
  xdsTokenFile: 'SLUICE_XDS_TOKEN_FILE',
  xdsCaFile: 'SLUICE_XDS_CA_FILE',
  stateDir: 'SLUICE_STATE_DIR',
  proxyName: 'SLUICE_PROXY_NAME',
  advertiseAddress: 'SLUICE_ADVERTISE_ADDRESS',
  stdioAddress: 'SLUICE_STDIO_ADDRESS',
  stdioTokenFile: 'SLUICE_STDIO_TOKEN_FILE',
  stdioNamespaces: 'SLUICE_STDIO_NAMESPACES',
}

/** The value of a setting under `config` in the file; undefined if it is not set there. */
export function fileSetting({ rawConfig }: ProxyParameters, name: string): unknown {
  const config = isMap(rawConfig) ? rawConfig.config : undefined
  const value = isMap(config) && Object.hasOwn(config, name) ? config[name] : undefined
  return value ?? undefined
}

/** Settings in rawConfig that have no effect because a generated variable always overrides them. */
export function hiddenSettings(parameters: ProxyParameters): string[] {
  return Object.keys(controllerVariables).filter(
    (name) => fileSetting(parameters, name) !== undefined,
  )
}

/** Variables override the file. Returns undefined if the variable takes its value from another object. */
function settingOf(parameters: ProxyParameters, name: string, variable: string): unknown {
  const own = parameters.env?.find((one) => one.name === variable)
  return own === undefined ? fileSetting(parameters, name) : own.value
}

/** The port of an address setting, or `standard` if it has none; undefined if it is `off`. */
function portOf(address: unknown, defaultPort: number): number | undefined {
  if (address === 'off') return undefined
  const [, digits] = typeof address === 'string' ? (/:([0-9]{1,5})$/.exec(address) ?? []) : []
  const port = Number(digits ?? 0)
  return port >= 1 && port <= 65_535 ? port : defaultPort
}

/** The port on which the proxy serves its metrics. */
export function statsPort(parameters: ProxyParameters): number | undefined {
  return portOf(settingOf(parameters, 'statsAddress', 'SLUICE_STATS_ADDRESS'), 15_020)
}

/** The port on which the proxy reports that it is ready. */
export function readinessPort(parameters: ProxyParameters): number | undefined {
  return portOf(settingOf(parameters, 'readinessAddress', 'SLUICE_READINESS_ADDRESS'), 15_021)
}

/** Shutdown deadlines in seconds if neither the parameters nor the file set them. */
const defaultShutdown = { min: 10, max: 60 } as const

/** Parses whole seconds, written as a number or as `30s`. */
function secondsOf(value: unknown): number | undefined {
  const [, digits] = /^([0-9]{1,8})s?$/.exec(String(value)) ?? []
  return digits === undefined ? undefined : Number(digits)
}

/**
 * The shutdown deadlines of the pod, in seconds. `min` and `max` are omitted if the file sets them.
 * Kubernetes kills the pod after `graceSeconds`.
 */
export function shutdownDeadlines(parameters: ProxyParameters): {
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
