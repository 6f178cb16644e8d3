import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { pandaServer } from '../support/panda.ts';
import { Site } from '../support/site.ts';

describe('the cacher and a real PanDA server', () => {
  it('fetches a call of the server with its login, for the programs that read the dump file', async () => {
    const { url, ca, production } = pandaServer();
    const site = new Site({
      queues: {},
      settings: {
        pandacon: {
          server_api_url_ssl: url,
          auth_type: 'x509',
          cert_file: production.cert,
          key_file: production.key,
          ca_cert: ca,
        },
        cacher: { data: ['resource_types.json||panda_server:get_resource_types|types.json'], timeout: 60 },
      },
    });
    try {
      const { stdout, stderr, status } = await site.run('cacher', 'refresh');
      expect([stdout, stderr, status]).to.deep.equal(['resource_types.json: new\n', '', 0]);
      const types = JSON.parse(readFileSync(site.path('types.json'), 'utf8')) as { resource_name: string }[];
      expect(types.map(({ resource_name: name }) => name)).to.include.members(['SCORE', 'MCORE']);
    } finally {
      await site.clean();
    }
  });
});
