/** The entry point of the command line. */
import { CommanderError } from 'commander'
import { createProgram } from './tools/cli/commands.ts'
import { fail } from './tools/cli/failure.ts'
import { processOutput, surviveOutputErrors } from './tools/cli/shared/output.ts'

surviveOutputErrors()
try {
  await createProgram().parseAsync()
} catch (error) {
  process.exitCode = await fail(error, processOutput)
  // Something that the failed command has started, such as a watch, must not keep the process alive.
  if (!(error instanceof CommanderError)) process.exit()
}
