/** The command `sluice doctor` and its options. */
import type { Command } from 'commander'
import { addLogFile } from '../recording/options.ts'
import { manifests, natsServer, nonEmpty, outputFormat } from '../shared/options.ts'
import { type OutputFormat, print } from '../shared/output.ts'
import type { DoctorOptions } from './doctor.ts'

export function addDoctor(program: Command): void {
  const command = program
    .command('doctor')
    .description('check a cluster, a gateway on this machine or manifests, and say what to do')
    .addOption(manifests())
    .option(
      '--kubeconfig <path>',
      'kubeconfig file of a cluster (default in a pod: its cluster)',
      nonEmpty,
    )
    .option(
      '--namespace <name>',
      "the controller's namespace (default: that of the context)",
      nonEmpty,
    )
    .option('--nats <url>', 'event log on a NATS server', natsServer)
  addLogFile(command, ['file', 'nats', 'kubeconfig'])
    .addOption(outputFormat())
    .action(async (options: DoctorOptions & { readonly output: OutputFormat }) => {
      const { doctor } = await import('./doctor.ts')
      await print(doctor(options), options.output)
    })
}
