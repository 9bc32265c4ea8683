/** The commands `sluice completion` and `sluice manual`. */
import { Argument, type Command } from 'commander'
import { processOutput as output } from '../shared/output.ts'
import { packageVersion } from '../shared/version.ts'
import type { Shell } from './completion.ts'

/** Adds both commands. They describe the program as it is when they run. */
export function addShellCommands(program: Command): void {
  program
    .command('completion')
    .description('print a completion script: source <(sluice completion bash)')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .action(async (shell: Shell) => {
      const { describeCommand } = await import('./command-tree.ts')
      const { completionScript } = await import('./completion.ts')
      output.print(completionScript(describeCommand(program), shell))
    })
  program
    .command('manual')
    .description('print the manual page: sluice manual | man -l -')
    .action(async () => {
      const { describeCommand } = await import('./command-tree.ts')
      const { manualPage } = await import('./manual.ts')
      output.print(manualPage(describeCommand(program), packageVersion()))
    })
}
