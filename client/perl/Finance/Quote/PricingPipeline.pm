# Prices of pricing_pipeline for Finance::Quote, which GnuCash asks. docs/recipes/gnucash.md says how to install it.
#
# PRICES_URL (default http://127.0.0.1:8000) is the address of the API, PRICES_TOKEN the token of a feed.

package Finance::Quote::PricingPipeline;

use strict;
use warnings;

use JSON ();
use LWP::UserAgent;
use POSIX qw(strftime);
use Time::Local qw(timegm);

our $VERSION = '0.1.0';

my @LABELS = qw(symbol last currency date isodate time method success errormsg);

sub methods { return (pricing_pipeline => \&fetch) }

sub labels { return (pricing_pipeline => \@LABELS) }

# The newest price of each symbol, of all data types that the feed has. A symbol without one gets `errormsg`.
sub fetch {
    my ($quoter, @symbols) = @_;
    my ($prices, $missing, $fault) = _read_feed();
    my %info;
    foreach my $symbol (@symbols) {
        my $price = $prices->{$symbol};
        my $why = $price ? _unusable($price) : $fault || $missing->{$symbol} || 'it is not in the feed';
        $info{$symbol, 'symbol'} = $symbol;
        $info{$symbol, 'method'} = 'pricing_pipeline';
        $info{$symbol, 'success'} = $why ? 0 : 1;
        if ($why) {
            $info{$symbol, 'errormsg'} = $why;
            next;
        }
        $info{$symbol, 'last'} = $price->{price};    # a string, so that no digit is lost
        $info{$symbol, 'currency'} = $price->{currency};
        _store_time($quoter, \%info, $symbol, $price);
    }
    return wantarray ? %info : \%info;
}

# The newest price by symbol, why others are missing, and what is wrong if nothing could be read.
sub _read_feed {
    my $token = $ENV{PRICES_TOKEN} or return ({}, {}, 'PRICES_TOKEN is not set: `pricing-pipeline token add` makes one');
    my $url = (($ENV{PRICES_URL} || 'http://127.0.0.1:8000') =~ s{/+$}{}r) . '/v1/prices';
    # No redirection is followed: it could carry the token to another server.
    my $agent = LWP::UserAgent->new(timeout => 30, max_redirect => 0, env_proxy => 1);
    my $answer = $agent->get($url, Accept => 'application/json', Authorization => "Bearer $token");
    my $content = eval { JSON::decode_json($answer->content) };
    if (!$answer->is_success || ref $content ne 'HASH') {
        return ({}, {}, "$url: " . (ref $content eq 'HASH' && $content->{detail} || $answer->status_line));
    }
    my (%prices, %missing);
    foreach my $price (@{$content->{prices}}) {
        my $other = $prices{$price->{symbol}};
        $prices{$price->{symbol}} = $price unless $other && $other->{observed_at} gt $price->{observed_at};
    }
    $missing{$_->{symbol}} = $_->{why}{sentence} foreach @{$content->{missing}};
    return (\%prices, \%missing, undef);
}

# GnuCash stores a price of 0.00, and cannot read a negative one.
sub _unusable {
    my ($price) = @_;
    return 'its price is in no currency' unless $price->{currency};
    return "its price is $price->{price}" unless $price->{price} > 0;
    return;
}

# The trading day of a daily value, which GnuCash takes as noon; of others the time on this machine's clock.
sub _store_time {
    my ($quoter, $info, $symbol, $price) = @_;
    my $day = $price->{date};
    if (!$day) {
        my ($year, $month, $date, $hour, $minute, $second) = $price->{observed_at} =~ /(\d+)/g;
        my @local = localtime timegm($second, $minute, $hour, $date, $month - 1, $year);
        $day = strftime('%Y-%m-%d', @local);
        $info->{$symbol, 'time'} = strftime('%H:%M:%S', @local);
    }
    $quoter->store_date($info, $symbol, {isodate => $day});
    return;
}

1;
