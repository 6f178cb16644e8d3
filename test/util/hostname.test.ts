import { expect } from 'chai';
import { hostnameFor, withHostname } from '../../src/util/hostname.ts';

describe('the host name of an option', () => {
  it("is the short one, as Harvester's, and the whole one with useFQDN", () => {
    expect(hostnameFor({}, 'submit1.site.org')).to.equal('submit1');
    expect(hostnameFor({ useFQDN: true }, 'submit1.site.org')).to.equal('submit1.site.org');
    expect(hostnameFor({ useFQDN: false }, 'submit1')).to.equal('submit1');
  });

  it('replaces $hostname and ${hostname}, and no longer name', () => {
    const text = 'https://$hostname/${hostname}/$hostnames';
    expect(withHostname(text, 'submit1')).to.equal('https://submit1/submit1/$hostnames');
  });
});
