/** The command `sluice validate` and its options. */
import { type Command, Option } from 'commander'
import { manifests, outputFormat } from '../shared/options.ts'
import { print, processOutput } from '../shared/output.ts'
import type { ValidateOptions } from './validate.ts'

export function addValidate(program: Command): void {
  program
    .command('validate [path...]')
    .description('check manifests; exit with 1 if an object is invalid')
    .addOption(manifests())
    .option(
      '--strict',
      'exit with 1 also if a reference leads to an object that is not in the files',
    )
    .addOption(outputFormat())
    .addOption(
      new Option('--format <format>', 'print a report for other tools')
        .choices(['sarif', 'github', 'junit'])
        .conflicts('output'),
    )
    .action(async (paths: string[], { file = [], ...options }: Partial<ValidateOptions>) => {
      const { validate } = await import('./validate.ts')
      const output = options.output ?? 'text'
      const given = { ...options, output, file: [...file, ...paths] }
      await print(validate(given, processOutput.report), output)
    })
}
