/** The commands `sluice completion` and `sluice manual`. They describe the program as it is when they run. */
import { Argument, type Command } from 'commander'
import { processOutput } from '../shared/output.ts'
import { packageVersion } from '../shared/version.ts'
import type { Shell } from './completion.ts'

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print a completion script: source <(sluice completion bash)')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .action(async (shell: Shell) => {
      const { describeCommand } = await import('./command-tree.ts')
      const { completionScript } = await import('./completion.ts')
      processOutput.print(completionScript(describeCommand(program), shell))
    })
}

export function addManual(program: Command): void {
  program
    .command('manual')
    .description('print the manual page: sluice manual | man -l -')
    .action(async () => {
      const { describeCommand } = await import('./command-tree.ts')
      const { manualPage } = await import('./manual.ts')
      processOutput.print(manualPage(describeCommand(program), packageVersion()))
    })
}
