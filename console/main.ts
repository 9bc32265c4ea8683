import { ConsoleServer, takeKey } from './source/server.ts'

const main = document.querySelector('main') as HTMLElement

async function show(): Promise<void> {
  const key = takeKey()
  if (key === undefined) {
    main.textContent = 'Open the URL that sluice printed at its start.'
    return
  }
  const { version, log } = await new ConsoleServer(key).about()
  main.textContent = `Sluice ${version}, events ${log?.first ?? 0} to ${log?.last ?? 0}`
}

show().catch((error) => {
  main.textContent = error.message
})
