/** The command `sluice controller` and its options. */
import type { Command } from 'commander'
import { controllerConsoleSettings } from '../../../ground/settings/console.ts'
import {
  type ControllerSettingName,
  controllerSettings,
} from '../../../ground/settings/controller.ts'
import { addSettings } from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'

export function addController(program: Command): void {
  const command = program.command('controller').description('run the control plane of a cluster')
  addSettings(command, { ...controllerSettings, ...controllerConsoleSettings }).action(
    async (flags: Partial<Record<ControllerSettingName, string>>) => {
      const { controller } = await import('./controller.ts')
      process.exitCode = await controller(flags, processOutput)
    },
  )
}
