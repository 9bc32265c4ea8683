import { describe, expect, it } from 'vitest'
import { fileName, settingsOfFile } from './config-file.ts'
import { settings } from './index.ts'
import { remoteSettings } from './remote.ts'

const rows = Object.values({ ...settings, ...remoteSettings })
const read = (content: unknown) => settingsOfFile(content, rows, 'file')

describe('the configuration file of a proxy', () => {
  it('sets settings by flag or variable name, and the logging section', () => {
    const config = {
      workers: 2,
      udpIdleTimeout: '30s',
      trustedProxies: ['10.0.0.0/8', '::1'],
      logging: { level: 'warn', format: 'json' },
    }
    expect(read({ config }).values).toEqual({
      SLUICE_WORKERS: '2',
      SLUICE_UDP_IDLE_TIMEOUT: '30s',
      SLUICE_TRUSTED_PROXIES: '10.0.0.0/8,::1',
      RUST_LOG: 'warn',
      SLUICE_LOG_FORMAT: 'json',
      LOG_FORMAT: 'json',
    })
  })

  it('sets the access log format independently of the log format', () => {
    const { values } = read({ config: { accessLog: 'text', logging: { format: 'json' } } })
    expect(values).toMatchObject({ LOG_FORMAT: 'text', SLUICE_LOG_FORMAT: 'json' })
  })

  it('reports unknown fields, and the source of each setting', () => {
    const { unknown, sources } = read({
      other: 1,
      config: { workers: 2, wrokers: 3, logging: { x: 1 } },
    })
    expect(unknown).toEqual(['other', 'config.wrokers', 'config.logging.x'])
    expect(sources).toEqual({ SLUICE_WORKERS: 'file: config.workers' })
  })

  it.each([
    ['text', 'file'],
    [{ config: [] }, 'file: config'],
    [{ config: { workers: {} } }, 'file: config.workers'],
  ])('is refused if its content is %j', (content, source) => {
    expect(read(content).problems).toMatchObject([{ source }])
  })

  it('may be empty or null, and has a unique name for every setting', () => {
    expect(read(null).problems).toEqual([])
    expect(read({ config: { workers: null } }).values).toEqual({})
    expect(new Set(rows.map(fileName)).size).toBe(rows.length)
  })
})
