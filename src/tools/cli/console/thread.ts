/** The thread that runs commands for the page, so that they never hold up the process. */
import { parentPort } from 'node:worker_threads'
import { type CommandRequest, runConsoleCommand } from './commands.ts'

parentPort?.on('message', async (request: CommandRequest) => {
  parentPort?.postMessage(await runConsoleCommand(request))
})
