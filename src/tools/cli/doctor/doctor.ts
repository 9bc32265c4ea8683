/** `sluice doctor` checks a cluster, the event log of a gateway, or manifests, and says what to do. */
import { ClusterConfigError, KubeClient, openCluster } from '../../../control/kube/index.ts'
import { withoutPasswords } from '../../../control/log/nats-connection.ts'
import { type CommandResult, exitCode, UsageError } from '../shared/output.ts'
import { clusterChecks } from './cluster.ts'
import { type Check, type CheckPlan, runChecks } from './finding.ts'
import { logChecks, manifestChecks } from './state.ts'
import { checkDisk, checkNats } from './storage.ts'

export interface DoctorOptions {
  readonly file?: readonly string[]
  readonly logFile?: string
  readonly nats?: string
  readonly kubeconfig?: string
  readonly namespace?: string
}

/** Runs the checks. The exit code is 1 if there is an error; a check that cannot run does not change it. */
export async function doctor(options: DoctorOptions): Promise<CommandResult> {
  const checks = await runChecks(await plansOf(options))
  const findings = checks.flatMap(({ name, findings: found }) =>
    found.map((one) => ({ check: name, ...one })),
  )
  const lines = checks.flatMap(linesOf)
  const errors = findings.filter(({ severity }) => severity === 'error').length
  return {
    text: () => [...lines.map(({ text }) => text), '', summary(errors, findings.length - errors)],
    isProblem: (index) => lines[index]?.isProblem === true,
    json: {
      checks: checks.map(({ name, notChecked, findings: { length } }) => ({
        name,
        findings: length,
        ...(notChecked !== undefined && { notChecked }),
      })),
      findings,
    },
    exitCode: errors > 0 ? exitCode.negative : exitCode.success,
  }
}

const plural = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`

const summary = (errors: number, warnings: number): string =>
  `${plural(errors, 'error')}, ${plural(warnings, 'warning')}`

function linesOf({ name, findings, notChecked }: Check) {
  const state = notChecked === undefined ? 'ok' : `not checked: ${notChecked}`
  const head =
    findings.length === 0 || notChecked !== undefined
      ? [{ text: `${name}: ${state}`, isProblem: false }]
      : []
  return [
    ...head,
    ...findings.flatMap(({ severity, subject, message, advice }) => [
      { text: `${name}: ${severity}: ${subject}: ${message}`, isProblem: severity === 'error' },
      { text: `  → ${advice}`, isProblem: false },
    ]),
  ]
}

async function plansOf(options: DoctorOptions): Promise<CheckPlan[]> {
  const { file, logFile, nats, kubeconfig, namespace } = options
  const given = [file, logFile, kubeconfig].filter((one) => one !== undefined)
  if (given.length > 1) throw new UsageError('give only one of -f, --log-file and --kubeconfig')
  if (file !== undefined) return manifestChecks(file)
  if (logFile !== undefined) {
    const disk = { name: 'storage', run: () => checkDisk(logFile) }
    return [disk, ...(await logChecks({ logFile }, `--log-file ${logFile}`))]
  }
  const isCluster = kubeconfig !== undefined || process.env.KUBERNETES_SERVICE_HOST !== undefined
  const server = nats ?? process.env.SLUICE_NATS
  if (!isCluster && server === undefined) {
    throw new UsageError('nothing to check: give --kubeconfig, --nats, --log-file or -f')
  }
  return [
    ...(isCluster ? clusterPlans(kubeconfig, namespace) : []),
    ...(server === undefined ? [noNats] : natsPlans(server, isCluster)),
  ]
}

const noNats: CheckPlan = {
  name: 'nats',
  run: () => ({ findings: [], notChecked: 'give --nats to check the server and the proxies' }),
}

function natsPlans(servers: string, isCluster: boolean): CheckPlan[] {
  const source = `--nats ${withoutPasswords(servers)}`
  const proxies = async () => {
    const plans = await logChecks({ nats: servers }, source)
    // The statuses of the cluster were checked already.
    const wanted = isCluster ? plans.filter(({ name }) => name === 'proxies') : plans
    const checks = await runChecks(wanted)
    const notChecked = checks.find((check) => check.notChecked !== undefined)?.notChecked
    const findings = checks.flatMap((check) => check.findings)
    return { findings, ...(notChecked !== undefined && { notChecked }) }
  }
  return [
    { name: 'nats', run: () => checkNats(servers) },
    { name: isCluster ? 'proxies' : 'log', run: proxies },
  ]
}

function clusterPlans(kubeconfig?: string, namespace?: string): CheckPlan[] {
  try {
    const cluster = openCluster(kubeconfig)
    const home = namespace ?? process.env.POD_NAMESPACE ?? cluster.namespace ?? 'default'
    return clusterChecks(new KubeClient(cluster), home)
  } catch (error) {
    if (error instanceof ClusterConfigError) throw new UsageError(error.message)
    throw error
  }
}
