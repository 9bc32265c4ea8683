/** The command `sluice ai` and its options. */
import { type Command, Option } from 'commander'
import { gatewayConsoleSettings } from '../../../ground/settings/console.ts'
import { settings } from '../../../ground/settings/index.ts'
import { protectionSettings } from '../../../ground/settings/protection.ts'
import { addSettings, clientKeyOptions, collect, port } from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'
import type { AiOptions } from './ai.ts'
import { vendors } from './vendors.ts'

export function addAi(program: Command): void {
  const command = program
    .command('ai')
    .description('run a gateway for language models on this machine, without manifests')
  for (const { name, variables } of vendors) {
    const described = `serve ${name} with the key in this environment variable, such as ${variables[0]}`
    command.option(`--${name}-key-env <variable>`, described)
  }
  command
    .option('--from-env', "serve every vendor whose SDK's variable is set")
    .option('--ollama', 'serve Ollama on this machine; it gets every model that no vendor has')
    .addOption(
      new Option('--base-url <name=url>', 'address of a vendor; may be repeated')
        .argParser(collect)
        .default([], 'its own'),
    )
    .addOption(port('port of the gateway').default(4000))
    .option('--no-masks', 'do not mask addresses, numbers of phones and cards in texts')
    .option(
      '--budget <amount/window>',
      'what may be spent, such as 5USD/day, 200000tokens/hour or 100requests/week',
    )
    .option('--print', 'print the manifests, and do not run')
  clientKeyOptions(command, 'at each start')
  addSettings(command, { ...settings, ...protectionSettings, ...gatewayConsoleSettings }).action(
    async (given: Given) => {
      const { ai } = await import('./ai.ts')
      const keyVariables = Object.fromEntries(
        vendors.map(({ name }) => [name, given[`${name}KeyEnv`] as string | undefined]),
      )
      process.exitCode = await ai({ ...given, keyVariables }, processOutput)
    },
  )
}

type Given = Omit<AiOptions, 'keyVariables'> & Readonly<Record<string, unknown>>
